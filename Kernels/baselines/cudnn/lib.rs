//! cuDNN 9, loaded on first use.
//!
//! Operations are graphs of the backend API: descriptors of tensors and operations become an
//! operation graph, cuDNN's own heuristics choose an engine for it, and the resulting [`Plan`] runs
//! on any set of addresses. Neither headers nor libraries of cuDNN are needed to build this.

mod attention;
mod backend;
mod cache;
mod enums;
mod graph;
mod library;
mod memory;
mod norm;
mod paged;

pub use attention::Attention;
pub use cache::Plans;
pub use enums::DataType;
pub use graph::{Graph, Launch, Plan};
pub use library::{library, Error};
pub use norm::{Norm, NormBackward, NormForward, NormKind};
pub use paged::PagedAttention;
