//! Latent attention over a paged cache.

mod answers;
mod entry;
mod problem;
mod shape;
mod suites;

pub use problem::MlaDecodeProblem;
pub use shape::{MlaShape, MLA_LATENT, MLA_ROPE, MLA_WIDTH};
pub use suites::MlaSuite;
