//! The definition as a single-threaded loop: the baseline for everything else. Sums are in f64,
//! because a plain f32 running sum over a long sequence would fail the gate.

use crate::{Batch, Element};

pub fn plain_prefill<T: Element>(batch: &Batch<T>, out: &mut [T], mut lse: Option<&mut [f32]>) {
    let mut sums = vec![0.0f64; batch.value_dim];
    for sequence in 0..batch.sequences() {
        let first_key = batch.keys(sequence).start;
        for (query, row) in batch.queries(sequence).enumerate() {
            for head in 0..batch.heads {
                let place = row * batch.heads + head;
                let kv_head = head / batch.group();
                let q = &batch.q[place * batch.head_dim..][..batch.head_dim];
                let scores: Vec<f32> = (0..batch.visible(sequence, query))
                    .map(|key| {
                        let k = batch.key(first_key + key, kv_head);
                        let products = q.iter().zip(k).map(|(q, k)| q.widen() * k.widen());
                        batch.scale * products.sum::<f32>()
                    })
                    .collect();
                let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let mut total = 0.0f64;
                sums.fill(0.0);
                for (key, score) in scores.iter().enumerate() {
                    let weight = f64::from((score - largest).exp());
                    total += weight;
                    let v = batch.value(first_key + key, kv_head);
                    for (sum, v) in sums.iter_mut().zip(v) {
                        *sum += weight * f64::from(v.widen());
                    }
                }
                let row = &mut out[place * batch.value_dim..][..batch.value_dim];
                for (out, sum) in row.iter_mut().zip(&sums) {
                    *out = T::narrow((sum / total) as f32);
                }
                if let Some(lse) = lse.as_deref_mut() {
                    lse[place] = (f64::from(largest) + total.ln()) as f32;
                }
            }
        }
    }
}
