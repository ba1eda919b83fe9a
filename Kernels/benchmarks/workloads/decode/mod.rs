//! Attention of a few queries over a paged cache.

mod problem;
mod shape;
mod suites;

pub use problem::{decode_tensor, DecodeProblem};
pub use shape::{DecodeShape, KvLayout, KvType};
pub use suites::DecodeSuite;
