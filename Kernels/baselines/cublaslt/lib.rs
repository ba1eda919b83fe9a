//! cuBLASLt, loaded at run time: one GEMM, with the fastest of the algorithms proposed by its
//! heuristic.
//!
//! The library comes from the artifact lock or from CUBLASLT_LIBRARY. Without it, everything returns
//! an error that says so; there is no fallback.

mod driver;
mod library;
mod matmul;
mod types;

pub use library::Library;
pub use matmul::{Chosen, Matmul, Operands, Product, Scales, Session};
pub use types::Type;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Absent(libraries::Error),
    #[error("{call}: cuBLAS status {status}")]
    Status { call: &'static str, status: i32 },
    #[error("{call}: CUDA driver status {status}")]
    Driver { call: &'static str, status: i32 },
    #[error("its heuristic has no algorithm for this GEMM")]
    NoAlgorithm,
}
