//! cuBLASLt, loaded at run time: one matrix product, with the fastest of the algorithms that its
//! heuristic proposes.
//!
//! The library is found by the environment variable CUBLASLT_LIBRARY (a file or a folder) or by the
//! loader. Where it is not, everything says so; nothing else runs in its place.

mod driver;
mod library;
mod matmul;

pub use library::Library;
pub use matmul::{Chosen, Matmul, Operands, Product, Scales, Session, Type};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "cuBLASLt cannot be loaded ({0}); set CUBLASLT_LIBRARY to libcublasLt.so.13 or its folder"
    )]
    Absent(String),
    #[error("{call}: cuBLAS status {status}")]
    Status { call: &'static str, status: i32 },
    #[error("{call}: CUDA driver status {status}")]
    Driver { call: &'static str, status: i32 },
    #[error("its heuristic has no algorithm for this product")]
    NoAlgorithm,
}
