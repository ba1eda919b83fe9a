//! Row operations: norms, softmax, cross-entropy.

mod answers;
mod entry;
mod families;
mod op;
mod problem;
mod suites;

pub use op::{NormOp, NormTypes};
pub use problem::NormProblem;
pub use suites::NormSuite;
