//! Libraries loaded at run time: found, checked against the artifact lock, opened, and
//! recorded for the result file.
//!
//! They come from the lock: as runfiles of the program, or in the folders listed in
//! `HEAD_TO_HEAD_LIBRARIES`. Every file must have the lock's sha256, or nothing is loaded. A
//! variable per library selects the user's own instead, which is recorded as such. All files are
//! opened by absolute path, dependencies first, so that neither the loader's search path nor
//! `LD_LIBRARY_PATH` decides what runs.

mod digest;
mod error;
mod find;
mod lock;
mod mapped;
mod open;
mod record;
mod table;

pub use error::Error;
pub use find::runfiles;
pub use mapped::only_recorded;
pub use open::{folder, open, Opened, Processor, Symbols, Wanted};
pub use record::{Artifact, Library, Source};
pub use table::{
    CUBLAS, CUBLASLT, CUDART, CUDA_HEADERS, CUDNN, CUDNN_LEGACY, CUPTI, NCCL, NVRTC, ONEDNN,
    OPENBLAS, TRANSFORMER_ENGINE,
};
