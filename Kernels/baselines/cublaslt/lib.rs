//! cuBLASLt, loaded at run time: one matrix product, with the fastest of the algorithms that its
//! heuristic proposes.
//!
//! The library is the artifact lock's, or the one that CUBLASLT_LIBRARY names. Where there is none,
//! everything says so; nothing else runs in its place.

mod driver;
mod library;
mod matmul;

pub use library::Library;
pub use matmul::{Chosen, Matmul, Operands, Product, Scales, Session, Type};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Absent(libraries::Error),
    #[error("{call}: cuBLAS status {status}")]
    Status { call: &'static str, status: i32 },
    #[error("{call}: CUDA driver status {status}")]
    Driver { call: &'static str, status: i32 },
    #[error("its heuristic has no algorithm for this product")]
    NoAlgorithm,
}
