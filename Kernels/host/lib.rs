//! Shared by the CPU kernels: element types, functions that vectorise, and rows distributed over
//! threads.
//!
//! All arithmetic is in f32, whatever the element type.

pub mod e2m1;
pub mod e4m3;
mod element;
mod exponential;
mod lanes;
mod level;
mod rows;

pub use e4m3::E4m3;
pub use element::{Element, Plain};
pub use exponential::exp;
pub use lanes::{largest, sum, sum2};
pub use level::{at_every_level, level, Level};
pub use rows::{accumulate_rows, each_row, each_row2, threads};
