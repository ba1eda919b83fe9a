//! Dense and grouped GEMMs.

mod answers;
mod block_scales;
mod entry;
mod grouped_suites;
mod problem;
mod shape;
mod suites;

pub use grouped_suites::{GroupedGemmSuite, GroupedWorkload};
pub use problem::{BadGemm, GemmProblem};
pub use shape::{GemmShape, GroupKind, RowLayout, ScaleTiles, GROUP_ALIGNMENT, SCALE_BLOCK};
pub use suites::{DenseWorkload, GemmSuite};
