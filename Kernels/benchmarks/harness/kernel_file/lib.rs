//! A kernel without host code as a contender: PTX or a cubin, and a JSON file that says how to launch it.
//!
//! ```text
//! description: the file, checked      expression: sizes as integers over the axes
//!   -> plan: one problem's launch     tensor_map: descriptors among its arguments
//!     -> launch: by the CUDA driver, or by the PTX interpreter where that is the device
//! ```
//!
//! The harness launches it in its own process: there is no code of the stranger's on the host.

mod contender;
mod description;
mod expression;
mod launch;
mod plan;
mod tensor_map;

pub use contender::KernelFile;
pub use description::{code_path, Description, DescriptionError};
pub use expression::{Expression, ExpressionError};
