//! Row operations: norms, softmax, cross-entropy.

mod answers;
mod op;
mod problem;
mod suites;

pub use op::NormOp;
pub use problem::{NormProblem, NormTypes};
pub use suites::NormSuite;
