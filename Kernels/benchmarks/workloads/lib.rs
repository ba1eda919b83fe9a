//! What is raced: suites of shapes as data, with their provenance, and the problems made of them.

mod norm_answers;
mod norm_op;
mod norm_problem;
mod norm_suites;
mod shape;

pub use norm_op::{NormOp, UnknownOp};
pub use norm_problem::{NormProblem, NormTypes};
pub use norm_suites::{NormSuite, UnknownSuite};
pub use shape::{BadShape, RowShape};
