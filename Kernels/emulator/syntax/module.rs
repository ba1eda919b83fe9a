//! A parsed translation unit. Names are resolved: operands hold numbers of registers and variables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::{Space, Special, Type};

#[derive(Clone, Debug, Default)]
pub struct Module {
    /// As `.version` has it, such as (9, 0).
    pub version: (u32, u32),
    /// As `.target` has it, such as `sm_90a`.
    pub target: String,
    /// Where that word stands in the text, in bytes.
    pub target_span: Range<usize>,
    /// Where the text goes on behind `.version`, `.target` and `.address_size`.
    pub head_end: usize,
    /// Source files by the numbers that locations name.
    pub files: BTreeMap<u32, String>,
    /// Module-scope variables, and shared ones of functions.
    pub variables: Vec<Variable>,
    pub functions: Vec<Function>,
}

impl Module {
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions
            .iter()
            .find(|function| function.name == name && function.has_body)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    Private,
    Visible,
    Extern,
    Weak,
    Common,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    pub linkage: Linkage,
    pub align: u64,
    pub bytes: u64,
    /// `x[]`: dynamic shared memory, or defined elsewhere.
    pub is_unsized: bool,
    pub initial: Vec<u8>,
    pub line: u32,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub align: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Register {
    pub name: String,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub is_entry: bool,
    pub has_body: bool,
    /// Where the body begins in the text, behind its brace.
    pub body_start: usize,
    pub line: u32,
    pub parameters: Vec<Parameter>,
    pub returns: Vec<Parameter>,
    pub registers: Vec<Register>,
    /// Local and parameter variables of the body.
    pub variables: Vec<Variable>,
    pub instructions: Vec<Instruction>,
    /// Targets of `brx.idx`.
    pub tables: Vec<Vec<usize>>,
    pub locations: Vec<Location>,
    /// `.maxntid`, `.reqntid`, `.reqnctapercluster` and their like, with their numbers.
    pub directives: BTreeMap<String, Vec<u32>>,
}

/// A place in the source, and where it was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub file: u32,
    pub line: u32,
    pub inlined_at: Option<(u32, u32)>,
}

#[derive(Clone, Debug)]
pub struct Instruction {
    pub guard: Option<Guard>,
    /// With its modifiers.
    pub opcode: Arc<str>,
    pub operands: Vec<Operand>,
    /// Where it stands in the text, in bytes: from its guard to its semicolon.
    pub span: Range<usize>,
    /// Of the PTX text.
    pub line: u32,
    /// Number of one of the function's locations.
    pub location: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    pub register: u32,
    pub negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// Of the module's variables.
    Module(u32),
    /// Of the function's variables.
    Local(u32),
    Parameter(u32),
    Return(u32),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Register(u32),
    /// `!%p`
    NotRegister(u32),
    /// Two's complement in 64 bits.
    Integer(u64),
    /// Bits of an f32 literal.
    Single(u32),
    /// Bits of an f64 literal.
    Double(u64),
    Special(Special),
    Symbol(Symbol),
    /// `{a, b}`; also the lists of a call.
    Vector(Vec<Operand>),
    /// `[base+offset, more..]`
    Address {
        base: Box<Operand>,
        offset: i64,
        more: Vec<Operand>,
    },
    /// `p|q`
    Pair(Box<(Operand, Operand)>),
    /// An instruction's number, or the number of instructions for the end of the body.
    Label(usize),
    Table(u32),
    Function(String),
    /// `_`
    Sink,
}
