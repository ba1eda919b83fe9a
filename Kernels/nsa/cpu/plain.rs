//! One naive single-threaded loop: the baseline for the other.

use crate::{Branch, Element, Gated};

pub fn attend<T: Element>(input: &Branch<T>, out: &mut [T], lse: &mut [f32]) {
    let (dim, heads) = (input.dim, input.heads);
    let per_group = heads / input.groups;
    for (row, (out, lse)) in out.chunks_mut(dim).zip(lse).enumerate() {
        let (token, head) = (row / heads, row % heads);
        let query = &input.queries[row * dim..][..dim];
        let mut rows = Vec::new();
        input.rows(token, head / per_group, &mut rows);
        if rows.is_empty() {
            out.fill(T::narrow(0.0));
            *lse = 0.0;
            continue;
        }
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

pub fn gated_sum<T: Element>(input: &Gated<T>, out: &mut [T]) {
    for (index, out) in out.iter_mut().enumerate() {
        let branches = input.outputs.iter().zip(input.gates);
        let terms = branches.map(|(o, gate)| gate[index / input.dim].widen() * o[index].widen());
        *out = T::narrow(terms.sum());
    }
}
