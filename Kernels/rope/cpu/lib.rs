//! Rotary position embedding on the CPU: threaded over tokens and written for auto-vectorisation,
//! and, in [`plain`], as one naive loop.

pub mod plain;

pub use host::Element;
use rayon::prelude::*;

/// Which elements of a head form a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// `i` and `i + dim / 2`.
    HalfSplit,
    /// `2 i` and `2 i + 1`.
    Interleaved,
}

/// Rotation tables: one row of cos and sin per position, one value per pair.
#[derive(Clone, Copy, Debug)]
pub struct Angles<'a> {
    pub cos: &'a [f32],
    pub sin: &'a [f32],
    pub dim: usize,
    /// Rotate back, for the gradient.
    pub backward: bool,
}

impl Angles<'_> {
    /// Cos and sin of a token.
    fn of(&self, token: usize) -> (&[f32], &[f32]) {
        let half = self.dim / 2;
        let start = token % (self.cos.len() / half) * half;
        (&self.cos[start..][..half], &self.sin[start..][..half])
    }

    fn direction(&self) -> f32 {
        if self.backward {
            -1.0
        } else {
            1.0
        }
    }
}

/// Tokens per task.
const TASK_TOKENS: usize = 8;

/// In place; `heads` is `[tokens, heads_per_token, dim]`.
pub fn rotate<T: Element>(
    pairs: Pairs,
    heads: &mut [T],
    heads_per_token: usize,
    angles: Angles<'_>,
) {
    let (dim, direction) = (angles.dim, angles.direction());
    let row = heads_per_token * dim;
    heads
        .par_chunks_mut(TASK_TOKENS * row)
        .enumerate()
        .for_each_init(
            || vec![0.0; dim],
            |wide, (task, tokens)| {
                for (index, token) in tokens.chunks_mut(row).enumerate() {
                    let (cos, sin) = angles.of(task * TASK_TOKENS + index);
                    for head in token.chunks_mut(dim) {
                        T::widen_all(head, wide);
                        match pairs {
                            Pairs::HalfSplit => half_split(wide, cos, sin, direction),
                            Pairs::Interleaved => interleaved(wide, cos, sin, direction),
                        }
                        T::narrow_all(wide, head);
                    }
                }
            },
        );
}

fn half_split(head: &mut [f32], cos: &[f32], sin: &[f32], direction: f32) {
    let (first, second) = head.split_at_mut(cos.len());
    let angles = cos.iter().zip(sin);
    for ((a, b), (cos, sin)) in first.iter_mut().zip(second).zip(angles) {
        let sin = sin * direction;
        (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
    }
}

fn interleaved(head: &mut [f32], cos: &[f32], sin: &[f32], direction: f32) {
    for (pair, (cos, sin)) in head.chunks_exact_mut(2).zip(cos.iter().zip(sin)) {
        let (a, b, sin) = (pair[0], pair[1], sin * direction);
        pair[0] = a * cos - b * sin;
        pair[1] = b * cos + a * sin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_there_and_back_changes_nothing() {
        let (dim, heads, sequence) = (6, 2, 5);
        let angle = |index: usize| index as f32 * 0.1;
        let cos: Vec<f32> = (0..sequence * 3).map(|i| angle(i).cos()).collect();
        let sin: Vec<f32> = (0..sequence * 3).map(|i| angle(i).sin()).collect();
        let before: Vec<f32> = (0..11 * heads * dim).map(|i| i as f32 - 50.0).collect();
        for pairs in [Pairs::HalfSplit, Pairs::Interleaved] {
            let angles = |backward| Angles {
                cos: &cos,
                sin: &sin,
                dim,
                backward,
            };
            let (mut ours, mut plain) = (before.clone(), before.clone());
            rotate(pairs, &mut ours, heads, angles(false));
            plain::rotate(pairs, &mut plain, heads, angles(false));
            assert_eq!(ours, plain);
            assert_ne!(ours, before);
            rotate(pairs, &mut ours, heads, angles(true));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
            assert!(ours.iter().zip(&before).all(near));
        }
    }
}
