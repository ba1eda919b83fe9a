//! Slow, obvious implementations of the operations, one row at a time: the correct answers.
//!
//! Every function is generic over [`Real`]. With `f64` it is the oracle; with `f32` it is an honest
//! implementation in that precision, whose error sets the tolerance.

pub mod activation;
pub mod attention;
pub mod attention_decode;
pub mod cross_entropy;
mod erf;
pub mod layernorm;
pub mod quantize;
mod real;
pub mod rmsnorm;
pub mod rope;
pub mod softmax;

#[cfg(test)]
mod gradient;

pub use real::{farthest_sum, mean, sum, Real};
