//! The gate: nothing is timed that has not been proved right.
//!
//! A contender runs on buffers that are fenced with canaries, with its outputs poisoned, on two
//! different inputs. Its outputs are compared with an f64 oracle on a seeded sample of units, and
//! in full with the output of a plain reference where there is one. How much error is allowed is
//! measured, not chosen: see [`Budget`].

mod answers;
mod budget;
mod buffers;
mod check;
mod failure;
mod gate;

pub use answers::Answers;
pub use budget::{Budget, Errors};
pub use buffers::BufferSet;
pub use failure::{Failure, FailureKind};
pub use gate::{Gate, GateOptions};
