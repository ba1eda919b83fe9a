//! Element types and random bits: what a tensor's bytes mean, and how its values are generated.
//!
//! Everything here is exact and portable: the same seed gives the same bytes on every machine, and
//! the CUDA side (`harness/device`) reproduces them bit for bit.

mod dtype;
mod format;
mod random;

pub use dtype::{DType, UnknownDType};
pub use random::{bits, index_below, one_way, stream_bits, stream_key, uniform};
