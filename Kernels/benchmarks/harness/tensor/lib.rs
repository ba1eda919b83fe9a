//! Tensors as descriptions: name, type, shape, role, and how their contents are generated.
//!
//! This crate holds no memory. [`Inputs`] recomputes any element of any input from the seed, so an
//! oracle can check a few rows of a tensor that lives on a device.

mod inputs;
mod shaped;
mod spec;

pub use inputs::{fill_into, Contents, Input, Inputs};
pub use shaped::{Shaped, Slots, DEAD};
pub use spec::{place, Fill, Role, TensorSpec};
