//! Operations that somebody brings: what to compute is a file, and what is correct is a library.
//!
//! ```text
//! file: problem.json, checked       inputs: what tensors are filled with, timed and otherwise
//!   -> problem: one shape in one type, as any other problem
//!     -> oracle: asked for units, in a process of its own that all problems take turns with
//! ```

mod file;
mod inputs;
mod oracle;
mod problem;
mod unique;

pub use file::{BadProblem, ProblemFile};
pub use oracle::Seat;
pub use problem::{OwnProblem, SUITE};
