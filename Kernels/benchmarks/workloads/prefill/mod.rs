//! Attention over prompts.

mod answers;
mod entry;
mod problem;
#[cfg(test)]
mod problem_test;
mod shape;
mod suites;

pub use problem::PrefillProblem;
pub use shape::{BadPrefill, PrefillOp, PrefillShape};
pub use suites::PrefillSuite;
