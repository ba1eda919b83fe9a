//! The two sides of every comparison: a [`Problem`] to solve, and the [`Contender`]s that solve it.
//!
//! A problem knows its tensors, its cost and its correct answers; it never sees a device. A contender
//! gets the addresses of buffers filled by the harness, and enqueues its work on a stream.

mod contender;
mod device_info;
mod entry;
mod functions;
mod problem;
mod tensors;

pub use contender::{
    Bound, Buffer, Contender, ContenderError, Contenders, Facts, Identity, Kind, Pinned, Stream,
    Support, PLAN_US,
};
pub use device_info::{DeviceInfo, DeviceKind, UnknownDevice};
pub use entry::{Entry, FileShape, Shape};
pub use functions::{bound, buildable, contender, released, Binding, Releases};
pub use problem::{
    Cost, Family, Math, Piece, Places, Problem, Slice, Statement, Suite, Tolerance, Workload,
    SHAPES_SEED,
};
pub use tensors::Tensors;
