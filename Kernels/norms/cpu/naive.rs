//! Sums for plain loops: in f64, because a plain f32 running sum over a long row would fail the gate.

use crate::Element;

pub fn sum(terms: impl Iterator<Item = f32>) -> f32 {
    terms.map(f64::from).sum::<f64>() as f32
}

pub fn mean(terms: impl ExactSizeIterator<Item = f32>) -> f32 {
    let count = terms.len() as f32;
    sum(terms) / count
}

pub fn largest<T: Element>(x: &[T]) -> f32 {
    x.iter()
        .map(|x| x.widen())
        .fold(f32::NEG_INFINITY, f32::max)
}

pub fn narrowed(sums: &[f64]) -> Vec<f32> {
    sums.iter().map(|&sum| sum as f32).collect()
}
