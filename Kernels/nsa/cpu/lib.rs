//! Selected-block attention on the CPU: threaded over tokens and written so that the compiler
//! vectorises it; and, in [`plain`], as one obvious loop.

pub mod plain;

pub use host::Element;
use host::{exp, largest, sum, sum2};
use rayon::prelude::*;

/// Queries `[tokens, heads, dim]`, keys and values `[tokens, groups, dim]`, blocks
/// `[tokens, groups, selected]` with -1 for none.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a, T> {
    pub queries: &'a [T],
    pub keys: &'a [T],
    pub values: &'a [T],
    pub blocks: &'a [i32],
    pub sequence: usize,
    pub heads: usize,
    pub groups: usize,
    pub dim: usize,
    pub block: usize,
    pub selected: usize,
    pub scale: f32,
}

impl<T> Selected<'_, T> {
    /// Places of the keys and values that a token's group sees, in the order of its blocks.
    fn rows(&self, token: usize, group: usize) -> impl Iterator<Item = usize> + '_ {
        let position = token % self.sequence;
        let first = token - position;
        let start = (token * self.groups + group) * self.selected;
        let chosen = self.blocks[start..][..self.selected].iter();
        chosen.filter(|&&block| block >= 0).flat_map(move |&block| {
            let start = block as usize * self.block;
            (start..(start + self.block).min(position + 1))
                .map(move |key| ((first + key) * self.groups + group) * self.dim)
        })
    }
}

/// What a thread needs while it works on a token.
struct Buffers {
    keys: Vec<f32>,
    values: Vec<f32>,
    weights: Vec<f32>,
    query: Vec<f32>,
    sums: Vec<f32>,
}

/// `out` is like the queries; `lse` has one value a query head.
pub fn attend<T: Element>(input: &Selected<T>, out: &mut [T], lse: &mut [f32]) {
    let (dim, heads) = (input.dim, input.heads);
    let most = input.selected * input.block * dim;
    let tokens = out
        .par_chunks_mut(heads * dim)
        .zip(lse.par_chunks_mut(heads));
    tokens.enumerate().for_each_init(
        || Buffers {
            keys: vec![0.0; most],
            values: vec![0.0; most],
            weights: Vec::new(),
            query: vec![0.0; dim],
            sums: vec![0.0; dim],
        },
        |buffers, (token, (out, lse))| attend_token(input, token, buffers, out, lse),
    );
}

fn attend_token<T: Element>(
    input: &Selected<T>,
    token: usize,
    buffers: &mut Buffers,
    out: &mut [T],
    lse: &mut [f32],
) {
    let (dim, per_group) = (input.dim, input.heads / input.groups);
    for group in 0..input.groups {
        let mut end = 0;
        for place in input.rows(token, group) {
            let to = end..end + dim;
            T::widen_all(&input.keys[place..][..dim], &mut buffers.keys[to.clone()]);
            T::widen_all(&input.values[place..][..dim], &mut buffers.values[to]);
            end += dim;
        }
        for head in group * per_group..(group + 1) * per_group {
            let place = (token * input.heads + head) * dim;
            T::widen_all(&input.queries[place..][..dim], &mut buffers.query);
            lse[head] = attend_head(buffers, end, input.scale);
            T::narrow_all(&buffers.sums, &mut out[head * dim..][..dim]);
        }
    }
}

/// Leaves the output in `sums` and returns the logarithm of the sum of exponentials.
fn attend_head(buffers: &mut Buffers, end: usize, scale: f32) -> f32 {
    let Buffers {
        keys,
        values,
        weights,
        query,
        sums,
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
        // Sequences of 7: a query's own block of 4, and the first where that is another.
        let blocks: Vec<i32> = (0..tokens * groups)
            .flat_map(|row| {
                if row / groups % 7 < 4 {
                    [0, -1]
                } else {
                    [1, 0]
                }
            })
            .collect();
        let input = Selected {
            queries: &queries,
            keys: &keys,
            values: &values,
            blocks: &blocks,
            sequence: 7,
            heads,
            groups,
            dim,
            block: 4,
            selected: 2,
            scale: 0.5,
        };
        let mut out = [vec![0.0f32; queries.len()], vec![0.0; queries.len()]];
        let mut lse = [vec![0.0; tokens * heads], vec![0.0; tokens * heads]];
        attend(&input, &mut out[0], &mut lse[0]);
        plain::attend(&input, &mut out[1], &mut lse[1]);
        let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
        assert!(out[0].iter().zip(&out[1]).all(near));
        assert!(lse[0].iter().zip(&lse[1]).all(near));
        // The first query of a sequence sees its own key alone.
        assert_eq!(out[1][..dim], values[..dim]);
    }
}
