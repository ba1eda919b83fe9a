//! oneDNN on the CPU, loaded at run time: norms, softmax, activations and matrix products, each as
//! one primitive of its C API.
//!
//! The library comes from the artifact lock or from ONEDNN_LIBRARY. Without it, everything returns
//! an error that says so; there is no fallback.

mod library;
mod operation;
mod primitive;

pub use library::Library;
pub use operation::{Curve, Operation, Product, Rows, Type};
pub use primitive::{Call, Primitive};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Absent(libraries::Error),
    #[error("{call}: oneDNN status {status} ({})", meaning(*status))]
    Status { call: &'static str, status: i32 },
    #[error("oneDNN {version} does not have {operation}; set ONEDNN_LIBRARY to one that does")]
    Missing { version: String, operation: String },
    #[error(
        "oneDNN {version} was not built with OpenMP, so its number of threads cannot be made equal \
         to ours: set ONEDNN_LIBRARY to a build with OpenMP"
    )]
    Threads { version: String },
    #[error("{given} tensors were given to a primitive that takes {expected}")]
    Arguments { given: usize, expected: usize },
}

fn meaning(status: i32) -> &'static str {
    match status {
        1 => "out of memory",
        2 => "invalid arguments",
        3 => "not implemented",
        5 => "run-time error",
        _ => "see dnnl_status_t",
    }
}
