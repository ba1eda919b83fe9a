//! Dense and grouped matrix products.

mod answers;
mod grouped_suites;
mod layout;
mod problem;
mod suites;

pub use grouped_suites::{GroupedGemmSuite, GroupedWorkload};
pub use layout::{GroupKind, RowLayout, GROUP_ALIGNMENT};
pub use problem::{BadGemm, GemmProblem, GemmShape, SCALE_BLOCK};
pub use suites::{DenseWorkload, GemmSuite};
