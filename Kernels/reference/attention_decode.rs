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

/// What a query has seen so far. Weights are relative to the largest score, as in any kernel that does
/// not know the largest of all beforehand.
struct Seen<R> {
    largest: R,
    total: R,
    sums: Vec<R>,
}

impl<R: Real> Seen<R> {
    /// Positions that come after those of `self`.
    fn extend(&mut self, next: &Seen<R>) {
        let largest = if next.largest > self.largest {
            next.largest
        } else {
            self.largest
        };
        let (before, after) = (
            (self.largest - largest).exp(),
            (next.largest - largest).exp(),
        );
        self.largest = largest;
        self.total = self.total * before + next.total * after;
        for (sum, next) in self.sums.iter_mut().zip(&next.sums) {
            *sum = *sum * before + *next * after;
        }
    }
}

/// The attention of each query. `read` fills buffers with the keys and with the values, `value_width`
/// wide, of the requested positions. A query that sees nothing gives zeros.
///
/// `store` rounds the weights to the type in which they meet the values. Runs of positions are
/// processed in parallel; their sums are combined in order, so that results are reproducible.
pub fn attend<R: Real + Send + Sync>(
    queries: &[Query<R>],
    scale: R,
    value_width: usize,
    read: impl Fn(Range<usize>, &mut [R], &mut [R]) + Sync,
    store: impl Fn(R) -> R + Sync,
) -> Vec<Vec<R>> {
    let zero = R::of(0.0);
    let length = queries.iter().map(|query| query.visible).max().unwrap_or(0);
    let width = queries.first().map_or(0, |query| query.values.len());
    let runs: Vec<Range<usize>> = runs(length).collect();
    let mut all: Vec<Option<Seen<R>>> = queries.iter().map(|_| None).collect();
    for some in runs.chunks(RUNS_AT_ONCE) {
        let buffers = || (vec![zero; RUN * width], vec![zero; RUN * value_width]);
        let parts: Vec<Vec<Option<Seen<R>>>> = some
            .par_iter()
            .map_init(buffers, |(keys, values), run| {
                let keys = &mut keys[..run.len() * width];
                let values = &mut values[..run.len() * value_width];
                read(run.clone(), keys, values);
                let parts = queries.iter().map(|query| {
                    let seen = query.visible.clamp(run.start, run.end) - run.start;
                    let keys = keys.chunks_exact(width).take(seen);
                    let scores = keys.map(|key| scale * dot(&query.values, key));
                    weigh(scores.collect(), values.chunks_exact(value_width), &store)
                });
                parts.collect()
            })
            .collect();
        for parts in parts {
            for (all, part) in all.iter_mut().zip(parts) {
                match (all, part) {
                    (Some(all), Some(part)) => all.extend(&part),
                    (all, part) => *all = all.take().or(part),
                }
            }
        }
    }
    let outputs = all.into_iter().map(|seen| match seen {
        Some(Seen { total, sums, .. }) => sums.into_iter().map(|sum| sum / total).collect(),
        None => vec![zero; value_width],
    });
    outputs.collect()
}

/// Values weighed by the softmax of their scores; none without scores.
fn weigh<'a, R: Real + 'a>(
    mut scores: Vec<R>,
    mut values: impl ExactSizeIterator<Item = &'a [R]>,
    store: impl Fn(R) -> R,
) -> Option<Seen<R>> {
    let first = *scores.first()?;
    let largest = scores
        .iter()
        .fold(first, |top, &score| if score > top { score } else { top });
    for score in &mut scores {
        *score = (*score - largest).exp();
    }
    let total = crate::sum(scores.iter().copied());
    let mut sums: Vec<R> = {
        let weight = store(scores[0]);
        values.next()?.iter().map(|value| weight * *value).collect()
    };
    for (weight, value) in scores[1..].iter().zip(values) {
        let weight = store(*weight);
        for (sum, value) in sums.iter_mut().zip(value) {
            *sum = *sum + weight * *value;
        }
    }
    Some(Seen {
        largest,
        total,
        sums,
    })
}

fn runs(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length)
        .step_by(RUN)
        .map(move |start| start..(start + RUN).min(length))
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
            |run, key_rows, value_rows| {
                rows(&keys, width, run.clone(), key_rows);
                rows(&numbers, value_width, run, value_rows);
            },
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
        let never =
            |_: Range<usize>, _: &mut [f64], _: &mut [f64]| panic!("there is nothing to read");
        assert_eq!(attend(&[query], 1.0, 3, never, |weight| weight), [[0.0; 3]]);
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
            |_, keys, values| {
                keys.copy_from_slice(&[0.0, 1.0]);
                values.copy_from_slice(&[5.0, 3.0]);
            },
            |weight| weight,
        );
        assert_eq!(found, [[3.0]]);
    }
}
