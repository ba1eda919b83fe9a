//! An interpreter of PTX for sm_90a and sm_100a: warps, clusters, barriers, asynchronous copies, matrix products.
//!
//! Kernels are decoded once into a closed set of operations; what the table does not name is an error with kernel,
//! line and instruction. A grid runs under a schedule that decides when asynchronous work lands, so that a missing
//! wait shows. Not modelled: time, the caches, the order of sums inside a tensor core, the last bits of approximations.

mod convert;
mod counters;
mod decode;
mod dependence;
mod descriptor;
mod engine;
mod error;
mod flatten;
mod grid;
mod lanes;
mod launch;
mod limits;
mod map_field;
mod mbarrier;
mod meaning;
mod memory;
mod number;
mod op;
mod program;
mod proven;
mod race;
mod random;
#[cfg(test)]
mod scenarios;
mod tensor_map;
mod tensor_memory;
mod warp;

pub use counters::{class, Counters, Footprint, PerBlock, Spread};
pub use error::{Error, Place};
pub use grid::{run, Report};
pub use launch::{Launch, Schedule, TensorLoads, Watch, SCHEDULES};
pub use limits::MOST_SHARED;
pub use meaning::{Meaning, Narrow};
pub use memory::{Allocations, Block};
pub use op::{Address, Bit, CopyShape, Tcgen, TcgenA, TcgenKind, TcgenShape, Value, Wide, Word};
pub use program::{Module, Program, UnknownForm};
pub use proven::proof;
pub use race::Touched;
pub use tensor_map::TensorMap;
