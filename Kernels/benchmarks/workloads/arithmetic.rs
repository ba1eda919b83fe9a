//! What separates correct answers from honest ones: how a value is rounded when it is stored.

use contender::Slice;
use numeric::DType;
use reference::Real;
use tensor::{Input, Inputs};

/// Rounds a value to the type it is stored in, or leaves it as it is.
pub type Store = fn(DType, f64) -> f64;

pub fn exact(_dtype: DType, value: f64) -> f64 {
    value
}

pub fn rounded(dtype: DType, value: f64) -> f64 {
    dtype.round(value)
}

/// Elements of an input as `R`.
pub fn read<R: Real>(input: Input, start: usize, length: usize) -> Vec<R> {
    let values = input.range(start, length).into_iter();
    values.map(R::of).collect()
}

/// Values of a tensor from `start` on, as stored in it.
pub fn slice<R: Real>(
    inputs: &Inputs,
    name: &str,
    start: usize,
    values: impl IntoIterator<Item = R>,
    store: Store,
) -> Slice {
    let tensor = inputs.place(name);
    let dtype = inputs.specs()[tensor].dtype;
    let values = values.into_iter();
    Slice {
        tensor,
        start,
        values: values.map(|value| store(dtype, value.to_f64())).collect(),
    }
}

/// The magnitude of an output of attention: an lse is a score plus the logarithm of a sum, and nearly
/// 0 where few keys score little.
pub fn magnitude_of_attention(tensor: &str) -> f64 {
    match tensor {
        "lse" => 1.0,
        _ => 0.0,
    }
}
