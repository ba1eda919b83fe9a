//! The gate: nothing is timed before it has been shown to be correct.
//!
//! A contender runs on buffers between guard bands, on two different inputs, once with NaN in its
//! outputs and once with plausible garbage, and on every other kind of inputs that the problem names.
//! Its outputs are compared with an f64 oracle on a random sample of units, and in full with the
//! output of a plain reference if there is one. The tolerance is measured, not chosen: see
//! [`Budget`].

mod answers;
mod budget;
mod buffers;
mod check;
mod element;
mod failure;
mod gate;
mod part;
mod reference;
mod rests;

pub use answers::Answers;
pub use budget::{Budget, Errors, Margin};
pub use buffers::{BufferSet, Poison};
pub use element::{Element, Judge};
pub use failure::{Failure, FailureKind};
pub use gate::{Gate, GateOptions};
pub use reference::{Bind, Coverage};
pub use rests::check_rests;
