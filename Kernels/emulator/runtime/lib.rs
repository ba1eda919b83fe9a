//! The CUDA runtime over the PTX interpreter: host code linked against this crate instead of cudart runs its
//! kernels on the CPU, unchanged.
//!
//! Objects must carry PTX (`code=compute_90a`, not compressed). Device memory is the process's own. A launch runs to
//! its end before it returns, so streams and events have nothing to do. What is not here fails to link or returns an
//! error; nothing pretends to have worked.

mod cudart;
mod fatbin;
mod function;
mod recording;
mod registry;
mod settings;
mod tensor;
mod unit;

pub use function::Function;
pub use machine::{Schedule, TensorLoads, MOST_SHARED, SCHEDULES};
pub use recording::describe;
pub use registry::{
    compute_capability, forms, lend, take_reports, text_of, withdraw, Memory, Shape,
};
pub use settings::{multiprocessors_of, set, Fault, Settings};
pub use tensor::encode_tiled;
