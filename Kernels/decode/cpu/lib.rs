//! Decode attention on the CPU, over per-head caches and over one latent cache: threaded over
//! caches and written for auto-vectorisation, and, in [`plain`], as naive loops.
//!
//! All arithmetic is in f32, whatever the element type.

mod attend;
pub mod plain;
mod tasks;

pub use host::{E4m3, Element};
pub use tasks::{decode, latent, Decode, Latent, LATENT, ROPE};
