//! Decode attention on the CPU, over heads with caches of their own and over one latent cache:
//! threaded over caches and written so that the compiler vectorises it; and, in [`plain`], as
//! obvious loops.
//!
//! All arithmetic is in f32, whatever the elements are.

mod attend;
pub mod plain;
mod tasks;

pub use host::{E4m3, Element};
pub use tasks::{decode, latent, Decode, Latent, LATENT, ROPE};
