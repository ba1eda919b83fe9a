//! Attention of a few queries over a paged cache.

mod answers;
mod entry;
mod problem;
#[cfg(test)]
mod problem_test;
mod shape;
mod suites;

pub use problem::DecodeProblem;
pub use shape::{DecodeShape, KvLayout};
pub use suites::DecodeSuite;
