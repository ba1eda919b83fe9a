//! Native sparse attention.

mod answers;
mod entry;
mod op;
mod problem;
#[cfg(test)]
mod problem_test;
mod shape;
mod suites;

pub use op::NsaOp;
pub use problem::NsaProblem;
pub use shape::{BadNsa, NsaShape, Selection};
pub use suites::NsaSuite;
