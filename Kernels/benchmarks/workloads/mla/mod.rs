//! Latent attention over a paged cache.

mod problem;
mod suites;

pub use problem::{mla_tensor, MlaDecodeProblem, MLA_LATENT, MLA_ROPE, MLA_WIDTH};
pub use suites::{MlaShape, MlaSuite};
