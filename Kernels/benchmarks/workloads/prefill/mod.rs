//! Attention over prompts.

mod answers;
mod problem;
mod shape;
mod suites;

pub use problem::{PrefillOp, PrefillProblem};
pub use shape::{BadPrefill, PrefillShape};
pub use suites::PrefillSuite;
