//! One naive single-threaded loop: the baseline for the other.

use crate::{Angles, Element, Pairs};

pub fn rotate<T: Element>(
    pairs: Pairs,
    heads: &mut [T],
    heads_per_token: usize,
    angles: Angles<'_>,
) {
    let (dim, direction) = (angles.dim, angles.direction());
    for (token, row) in heads.chunks_mut(heads_per_token * dim).enumerate() {
        let (cos, sin) = angles.of(token);
        for head in row.chunks_mut(dim) {
            for pair in 0..dim / 2 {
                let (first, second) = match pairs {
                    Pairs::HalfSplit => (pair, pair + dim / 2),
                    Pairs::Interleaved => (2 * pair, 2 * pair + 1),
                };
                let (a, b) = (head[first].widen(), head[second].widen());
                let sin = sin[pair] * direction;
                head[first] = T::narrow(a * cos[pair] - b * sin);
                head[second] = T::narrow(b * cos[pair] + a * sin);
            }
        }
    }
}
