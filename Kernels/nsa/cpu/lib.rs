//! The branches of native sparse attention on the CPU: threaded over tokens and written for
//! auto-vectorisation, and, in [`plain`], as one naive loop.

mod gated;
pub mod plain;

pub use gated::{gated_sum, Gated};
pub use host::Element;
use host::{exp, largest, sum, sum2};
use rayon::prelude::*;

/// Queries `[tokens, heads, dim]`, keys and values `[rows, groups, dim]`.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a, T> {
    pub queries: &'a [T],
    pub keys: &'a [T],
    pub values: &'a [T],
    pub reach: Reach<'a>,
    pub sequence: usize,
    pub heads: usize,
    pub groups: usize,
    pub dim: usize,
    pub scale: f32,
}

/// The keys that a query sees.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    /// Blocks of `block` keys: `[tokens, groups, selected]`, -1 for none.
    Selected {
        blocks: &'a [i32],
        block: usize,
        selected: usize,
    },
    /// One row of keys per `block` tokens: the whole blocks up to the query.
    Compressed { block: usize },
    /// This many keys up to and including the query's own.
    Window(usize),
}

impl<T> Branch<'_, T> {
    /// Locations of the keys and values that a token's group sees.
    fn rows(&self, token: usize, group: usize, rows: &mut Vec<usize>) {
        let position = token % self.sequence;
        let first = token - position;
        rows.clear();
        let mut take = |first: usize, seen: std::ops::Range<usize>| {
            rows.extend(seen.map(|key| ((first + key) * self.groups + group) * self.dim));
        };
        match self.reach {
            Reach::Selected {
                blocks,
                block,
                selected,
            } => {
                let chosen = &blocks[(token * self.groups + group) * selected..][..selected];
                for &chosen in chosen.iter().filter(|&&chosen| chosen >= 0) {
                    let start = chosen as usize * block;
                    take(first, start..(start + block).min(position + 1));
                }
            }
            Reach::Compressed { block } => {
                let first = first / self.sequence * self.sequence.div_ceil(block);
                take(first, 0..(position + 1) / block);
            }
            Reach::Window(window) => {
                take(first, (position + 1).saturating_sub(window)..position + 1);
            }
        }
    }
}

/// A thread's scratch space for one token.
struct Buffers {
    rows: Vec<usize>,
    keys: Vec<f32>,
    values: Vec<f32>,
    weights: Vec<f32>,
    query: Vec<f32>,
    sums: Vec<f32>,
}

/// `out` is like the queries; `lse` has one value per query head. Both are 0 if it sees nothing.
pub fn attend<T: Element>(input: &Branch<T>, out: &mut [T], lse: &mut [f32]) {
    let (dim, heads) = (input.dim, input.heads);
    let tokens = out
        .par_chunks_mut(heads * dim)
        .zip(lse.par_chunks_mut(heads));
    tokens.enumerate().for_each_init(
        || Buffers {
            rows: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
            query: vec![0.0; dim],
            sums: vec![0.0; dim],
        },
        |buffers, (token, (out, lse))| attend_token(input, token, buffers, out, lse),
    );
}

fn attend_token<T: Element>(
    input: &Branch<T>,
    token: usize,
    buffers: &mut Buffers,
    out: &mut [T],
    lse: &mut [f32],
) {
    let (dim, per_group) = (input.dim, input.heads / input.groups);
    for group in 0..input.groups {
        input.rows(token, group, &mut buffers.rows);
        let end = buffers.rows.len() * dim;
        if buffers.keys.len() < end {
            buffers.keys.resize(end, 0.0);
            buffers.values.resize(end, 0.0);
        }
        for (row, &place) in buffers.rows.iter().enumerate() {
            let to = row * dim..(row + 1) * dim;
            T::widen_all(&input.keys[place..][..dim], &mut buffers.keys[to.clone()]);
            T::widen_all(&input.values[place..][..dim], &mut buffers.values[to]);
        }
        for head in group * per_group..(group + 1) * per_group {
            if end == 0 {
                out[head * dim..][..dim].fill(T::narrow(0.0));
                lse[head] = 0.0;
                continue;
            }
            let place = (token * input.heads + head) * dim;
            T::widen_all(&input.queries[place..][..dim], &mut buffers.query);
            lse[head] = attend_head(buffers, end, input.scale);
            T::narrow_all(&buffers.sums, &mut out[head * dim..][..dim]);
        }
    }
}

/// Leaves the output in `sums` and returns the log-sum-exp.
fn attend_head(buffers: &mut Buffers, end: usize, scale: f32) -> f32 {
    let Buffers {
        keys,
        values,
        weights,
        query,
        sums,
        ..
    } = buffers;
    let dim = query.len();
    weights.clear();
    let scores = keys[..end].chunks_exact(dim);
    weights.extend(scores.map(|key| scale * sum2(query, key, |q, k| q * k)));
    let top = largest(weights);
    for weight in weights.iter_mut() {
        *weight = exp(*weight - top);
    }
    let total = sum(weights, |weight| weight);
    sums.fill(0.0);
    for (weight, value) in weights.iter().zip(values[..end].chunks_exact(dim)) {
        for (sum, value) in sums.iter_mut().zip(value) {
            *sum += weight * value;
        }
    }
    sums.iter_mut().for_each(|sum| *sum /= total);
    top + total.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_plain_loop() {
        let (tokens, heads, groups, dim) = (14, 4, 2, 8);
        let value = |index: usize| ((index * 37 % 101) as f32 - 50.0) / 50.0;
        let queries: Vec<f32> = (0..tokens * heads * dim).map(value).collect();
        let keys: Vec<f32> = (0..tokens * groups * dim).map(|i| value(i + 9)).collect();
        let values: Vec<f32> = (0..tokens * groups * dim).map(|i| value(i + 5)).collect();
        // Sequences of 7: a query's own block of 4, and the first block if that is a different one.
        let blocks: Vec<i32> = (0..tokens * groups)
            .flat_map(|row| {
                if row / groups % 7 < 4 {
                    [0, -1]
                } else {
                    [1, 0]
                }
            })
            .collect();
        let selected = Reach::Selected {
            blocks: &blocks,
            block: 4,
            selected: 2,
        };
        for reach in [selected, Reach::Window(3), Reach::Compressed { block: 3 }] {
            let input = Branch {
                queries: &queries,
                keys: &keys,
                values: &values,
                reach,
                sequence: 7,
                heads,
                groups,
                dim,
                scale: 0.5,
            };
            let mut out = [vec![9.0f32; queries.len()], vec![8.0; queries.len()]];
            let mut lse = [vec![9.0; tokens * heads], vec![8.0; tokens * heads]];
            attend(&input, &mut out[0], &mut lse[0]);
            plain::attend(&input, &mut out[1], &mut lse[1]);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
            assert!(out[0].iter().zip(&out[1]).all(near), "{reach:?}");
            assert!(lse[0].iter().zip(&lse[1]).all(near), "{reach:?}");
            // The first query of a sequence sees only its own key, and no whole block.
            let first = match reach {
                Reach::Compressed { .. } => [0.0; 8],
                _ => values[..dim].try_into().unwrap(),
            };
            assert_eq!(out[1][..dim], first);
        }
    }
}
