//! Attention of a few queries over one long sequence: softmax(scale * q k^T) v.
//!
//! Keys and values are requested in runs, so that a sequence of any length needs little memory.

use std::ops::Range;

use rayon::prelude::*;

use crate::Real;

/// Positions read at a time.
const RUN: usize = 128;
/// Runs whose sums are held at a time.
const RUNS_AT_ONCE: usize = 64;

/// One query and how many positions it sees: the first `visible` ones.
#[derive(Clone, Debug)]
pub struct Query<R> {
    pub values: Vec<R>,
    pub visible: usize,
}

/// The attention of each query. `keys` and `values` fill a buffer with the rows of the requested
/// positions; value rows are `value_width` wide. A query that sees nothing gives zeros.
///
/// `store` rounds the weights to the type in which they meet the values. Runs of positions are
/// processed in parallel; their sums are combined in order, so that results are reproducible.
pub fn attend<R: Real + Send + Sync>(
    queries: &[Query<R>],
    scale: R,
    value_width: usize,
    keys: impl Fn(Range<usize>, &mut [R]) + Sync,
    values: impl Fn(Range<usize>, &mut [R]) + Sync,
    store: impl Fn(R) -> R + Sync,
) -> Vec<Vec<R>> {
    let zero = R::of(0.0);
    let length = queries.iter().map(|query| query.visible).max().unwrap_or(0);
    let width = queries.first().map_or(0, |query| query.values.len());
    let runs: Vec<Range<usize>> = runs(length).collect();
    let scores: Vec<Vec<Vec<R>>> = runs
        .par_iter()
        .map(|run| {
            let mut rows = vec![zero; run.len() * width];
            keys(run.clone(), &mut rows);
            let scores = queries.iter().map(|query| {
                let seen = query.visible.clamp(run.start, run.end) - run.start;
                let rows = rows.chunks_exact(width).take(seen);
                rows.map(|key| scale * dot(&query.values, key)).collect()
            });
            scores.collect()
        })
        .collect();
    let mut weights: Vec<Vec<R>> = (0..queries.len())
        .map(|query| scores.iter().flat_map(|run| &run[query]).copied().collect())
        .collect();
    let totals: Vec<R> = weights
        .par_iter_mut()
        .map(|row| exponentiate(row))
        .collect();
    let mut sums = vec![vec![zero; value_width]; queries.len()];
    for some in runs.chunks(RUNS_AT_ONCE) {
        // A run's sum is added to the total at once: the error of a running sum grows with its length.
        let partials: Vec<Vec<Vec<R>>> = some
            .par_iter()
            .map(|run| {
                let mut rows = vec![zero; run.len() * value_width];
                values(run.clone(), &mut rows);
                let partials = weights.iter().map(|weights| {
                    let seen = run.start.min(weights.len())..run.end.min(weights.len());
                    let mut partial = vec![zero; value_width];
                    for (weight, value) in weights[seen].iter().zip(rows.chunks_exact(value_width))
                    {
                        let weight = store(*weight);
                        for (partial, value) in partial.iter_mut().zip(value) {
                            *partial = *partial + weight * *value;
                        }
                    }
                    partial
                });
                partials.collect()
            })
            .collect();
        for partials in partials {
            for (sum, partial) in sums.iter_mut().zip(partials) {
                for (sum, partial) in sum.iter_mut().zip(partial) {
                    *sum = *sum + partial;
                }
            }
        }
    }
    for ((sum, total), query) in sums.iter_mut().zip(totals).zip(queries) {
        if query.visible > 0 {
            sum.iter_mut().for_each(|value| *value = *value / total);
        }
    }
    sums
}

fn runs(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length)
        .step_by(RUN)
        .map(move |start| start..(start + RUN).min(length))
}

/// Scores become exp(score - largest); returns their sum.
fn exponentiate<R: Real>(scores: &mut [R]) -> R {
    let Some(&first) = scores.first() else {
        return R::of(0.0);
    };
    let largest = scores
        .iter()
        .fold(first, |top, &score| if score > top { score } else { top });
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
    }
    crate::sum(scores.iter().copied())
}

/// Eight independent sums, which the compiler vectorises.
fn dot<R: Real>(a: &[R], b: &[R]) -> R {
    const LANES: usize = 8;
    let mut lanes = [R::of(0.0); LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (rest_a, rest_b) = (a.remainder(), b.remainder());
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane] + a[lane] * b[lane];
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *lane = *lane + a * b;
    }
    lanes.into_iter().fold(R::of(0.0), |sum, lane| sum + lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, values};
    use crate::softmax;

    /// The textbook form, for a sequence that fits in memory.
    fn textbook(query: &Query<f64>, scale: f64, keys: &[f64], values: &[f64]) -> Vec<f64> {
        let (width, length) = (query.values.len(), query.visible);
        let value_width = values.len() / (keys.len() / width);
        let scores: Vec<f64> = (0..length)
            .map(|t| {
                let products = (0..width).map(|d| query.values[d] * keys[t * width + d]);
                scale * products.sum::<f64>()
            })
            .collect();
        let weights = softmax::forward(&scores);
        (0..value_width)
            .map(|d| {
                (0..length)
                    .map(|t| weights[t] * values[t * value_width + d])
                    .sum()
            })
            .collect()
    }

    #[test]
    fn agrees_with_the_textbook_at_every_visibility() {
        let (width, value_width, length) = (11, 6, 300);
        let many = |seed, count: usize| values(seed, count as u64);
        let (keys, numbers) = (many(1, length * width), many(2, length * value_width));
        let queries: Vec<Query<f64>> = [1, 2, 127, 128, 129, 299, 300]
            .iter()
            .map(|&visible| Query {
                values: many(visible as u64, width),
                visible,
            })
            .collect();
        let rows = |from: &[f64], width: usize, run: Range<usize>, out: &mut [f64]| {
            out.copy_from_slice(&from[run.start * width..run.end * width]);
        };
        let found = attend(
            &queries,
            0.7,
            value_width,
            |run, out| rows(&keys, width, run, out),
            |run, out| rows(&numbers, value_width, run, out),
            |weight| weight,
        );
        for (query, found) in queries.iter().zip(found) {
            assert_close(&found, &textbook(query, 0.7, &keys, &numbers), 1e-13);
        }
    }

    #[test]
    fn a_query_that_sees_nothing_gives_zeros() {
        let query = Query {
            values: vec![1.0; 4],
            visible: 0,
        };
        let never = |_: Range<usize>, _: &mut [f64]| panic!("there is nothing to read");
        assert_eq!(
            attend(&[query], 1.0, 3, never, never, |weight| weight),
            [[0.0; 3]]
        );
    }

    #[test]
    fn large_scores_do_not_overflow() {
        let query = Query {
            values: vec![1e4f32],
            visible: 2,
        };
        let found = attend(
            &[query],
            1.0,
            1,
            |_, out| out.copy_from_slice(&[0.0, 1.0]),
            |_, out| out.copy_from_slice(&[5.0, 3.0]),
            |weight| weight,
        );
        assert_eq!(found, [[3.0]]);
    }
}
