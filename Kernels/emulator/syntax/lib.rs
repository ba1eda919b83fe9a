//! PTX as data: a parser that resolves names, keeps source lines, and says where a text is wrong.
//!
//! An instruction stays generic here, an opcode with its modifiers and resolved operands; which forms
//! exist and what they do is the interpreter's table.
#![forbid(unsafe_code)]

mod error;
mod module;
mod opcode;
mod parser;
mod special;
mod token;
mod types;

pub use error::ParseError;
pub use module::{
    Function, Guard, Instruction, Linkage, Location, Module, Operand, Parameter, Register, Symbol,
    Variable,
};
pub use opcode::{Opcode, UnknownModifier};
pub use parser::parse;
pub use special::{Axis, Special};
pub use types::{Space, Type};
