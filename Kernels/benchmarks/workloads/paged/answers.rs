//! Correct answers of attention over a paged cache.

use reference::attention_decode::{attend, Query};
use reference::Real;
use tensor::{Input, Inputs};

use crate::arithmetic::{read, Store};

/// Rows of a cache, one per token.
pub struct Rows<'a> {
    pub tensor: Input<'a>,
    /// Factor of stored elements.
    pub scale: f32,
    pub width: usize,
}

impl Rows<'_> {
    fn fill<R: Real>(
        &self,
        first: impl Fn(usize) -> usize,
        tokens: std::ops::Range<usize>,
        out: &mut [R],
    ) {
        let mut row = vec![0.0; self.width];
        for (token, out) in tokens.zip(out.chunks_exact_mut(self.width)) {
            self.tensor.range_into(first(token), &mut row);
            for (out, value) in out.iter_mut().zip(&row) {
                *out = R::of(*value * f64::from(self.scale));
            }
        }
    }
}

/// A cache as seen by the queries of one sequence.
pub struct Cache<'a, F> {
    pub keys: Rows<'a>,
    pub values: Rows<'a>,
    /// First element of a token's row of keys, and of values.
    pub first: F,
}

impl<F: Fn(usize) -> usize> Cache<'_, F> {
    fn read<R: Real>(&self, tokens: std::ops::Range<usize>, keys: &mut [R], values: &mut [R]) {
        self.keys.fill(&self.first, tokens.clone(), keys);
        let shared = self.keys.tensor.contents() == self.values.tensor.contents()
            && self.keys.scale == self.values.scale;
        if !shared {
            return self.values.fill(&self.first, tokens, values);
        }
        // Values that are the beginnings of the keys need not be drawn again.
        let keys = keys.chunks_exact(self.keys.width);
        for (value, key) in values.chunks_exact_mut(self.values.width).zip(keys) {
            value.copy_from_slice(&key[..value.len()]);
        }
    }
}

/// The output of each query, given as the first element of its row and the positions it sees.
/// Weights are rounded like the output before they multiply the values.
pub fn attended<R: Real + Send + Sync>(
    inputs: &Inputs,
    queries: &[(usize, usize)],
    cache: &Cache<impl Fn(usize) -> usize + Sync>,
    scale: f32,
    store: Store,
) -> Vec<Vec<R>> {
    let q = inputs.tensor("q");
    let dtype = inputs.specs()[inputs.place("out")].dtype;
    let queries: Vec<Query<R>> = queries
        .iter()
        .map(|&(start, visible)| Query {
            values: read(q, start, cache.keys.width),
            visible,
        })
        .collect();
    attend(
        &queries,
        R::of(f64::from(scale)),
        cache.values.width,
        |tokens, keys, values| cache.read(tokens, keys, values),
        |weight: R| R::of(store(dtype, weight.to_f64())),
    )
}

/// How many units the gate samples if each takes passes over a whole sequence, in f64 and in f32:
/// as many as `tokens` allow, within `range`.
pub fn sampled_units(lengths: &[usize], tokens: usize, range: (usize, usize)) -> usize {
    let longest = lengths.iter().max().unwrap_or(&0);
    (tokens / longest.max(&1)).clamp(range.0, range.1)
}
