//! Native sparse attention.

mod answers;
mod op;
mod problem;
mod shape;
mod suites;

pub use op::NsaOp;
pub use problem::{nsa_gated_tensor, nsa_tensor, NsaProblem};
pub use shape::{BadNsa, NsaShape, Selection};
pub use suites::NsaSuite;
