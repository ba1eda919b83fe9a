//! Attention on the CPU: [`prefill`], threaded, in blocks with an online softmax; and
//! [`plain_prefill`], the obvious loop.
//!
//! Arithmetic is in f32, whatever the elements are. Results do not depend on the number of threads.

mod batch;
mod plain;
mod prefill;

pub use batch::Batch;
pub use host::Element;
pub use plain::plain_prefill;
pub use prefill::prefill;
