//! A kernel on the device: the same three steps whatever runs it.

#[cfg(feature = "cuda")]
#[path = "launch/cuda.rs"]
mod here;
#[cfg(feature = "emulated")]
#[path = "launch/emulated.rs"]
mod here;
#[cfg(not(any(feature = "cuda", feature = "emulated")))]
#[path = "launch/none.rs"]
mod here;

/// `load` a module's code once, ask for its `parameters`, `prepare` a plan per set of buffers, and `launch` that.
pub use here::{Module, Prepared};
