//! Contenders that misbehave, each in one way, for tests of the harness.
//!
//! They solve one small problem, [`Scaled`]; the honest ones show that another contender's fault
//! does not harm their rows. The same list runs on the CPU and, with the feature `cuda`, on a GPU.

mod backend;
mod contenders;
mod fault;
pub mod guests;
mod outside;
mod problem;
mod sly;
pub mod suite;
mod work;

pub use contenders::{contenders, FaultyContender};
pub use fault::Fault;
pub use problem::Scaled;
