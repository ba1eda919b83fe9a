//! Tensors as descriptions: name, type, shape, role, and how their contents are made.
//!
//! No memory is held here. [`Inputs`] recomputes any element of any input from the seed, which is
//! what lets an oracle check a few rows of a tensor that lives on a device.

mod inputs;
mod spec;

pub use inputs::{fill_into, Inputs};
pub use spec::{Fill, Role, TensorSpec};
