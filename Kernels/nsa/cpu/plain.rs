//! One obvious loop on one thread: what the other is measured against.

use crate::{Element, Selected};

pub fn attend<T: Element>(input: &Selected<T>, out: &mut [T], lse: &mut [f32]) {
    let (dim, heads) = (input.dim, input.heads);
    let per_group = heads / input.groups;
    for (row, (out, lse)) in out.chunks_mut(dim).zip(lse).enumerate() {
        let (token, head) = (row / heads, row % heads);
        let query = &input.queries[row * dim..][..dim];
        let rows: Vec<usize> = input.rows(token, head / per_group).collect();
        let score = |&place: &usize| {
            let products = (0..dim).map(|i| query[i].widen() * input.keys[place + i].widen());
            input.scale * products.sum::<f32>()
        };
        let scores: Vec<f32> = rows.iter().map(score).collect();
        let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| (score - top).exp()).collect();
        let total: f32 = weights.iter().sum();
        for (column, out) in out.iter_mut().enumerate() {
            let terms = rows.iter().zip(&weights);
            let sum: f32 = terms
                .map(|(place, weight)| weight * input.values[place + column].widen())
                .sum();
            *out = T::narrow(sum / total);
        }
        *lse = top + total.ln();
    }
}
