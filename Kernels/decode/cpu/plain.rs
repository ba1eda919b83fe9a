//! Both operations as naive single-core loops: what the threaded ones have to beat.

use crate::tasks::{Decode, Latent, LATENT, WIDTH};
use crate::Element;

pub fn decode<T: Element, C: Element>(task: &Decode<T, C>, out: &mut [T]) {
    let dim = task.dim;
    for row in 0..task.batch * task.q_len * task.heads {
        let (token, head) = (row / task.heads, row % task.heads);
        let (sequence, query) = (token / task.q_len, token % task.q_len);
        let kv_head = head / (task.heads / task.kv_heads);
        let length = (task.visible)(sequence, query);
        let cached: Vec<usize> = (0..length)
            .map(|token| (task.row)(sequence, token, kv_head))
            .collect();
        let q = &task.q[row * dim..][..dim];
        let scores = cached
            .iter()
            .map(|&start| task.scale * dot(q, &task.keys[start..][..dim]))
            .collect();
        let weights = softmax(scores);
        for (d, out) in out[row * dim..][..dim].iter_mut().enumerate() {
            let products = cached.iter().zip(&weights);
            let sum: f32 = products
                .map(|(start, weight)| weight * task.values[start + d].widen())
                .sum();
            *out = T::narrow(task.value_scale * sum);
        }
    }
}

pub fn latent<T: Element, C: Element>(task: &Latent<T, C>, out: &mut [T]) {
    for row in 0..task.batch * task.q_len * task.heads {
        let token = row / task.heads;
        let (sequence, query) = (token / task.q_len, token % task.q_len);
        let length = (task.visible)(sequence, query);
        let cached: Vec<usize> = (0..length)
            .map(|token| (task.row)(sequence, token))
            .collect();
        let q = &task.q[row * WIDTH..][..WIDTH];
        let scores = cached
            .iter()
            .map(|&cached| task.scale * dot(q, &task.cache[cached * WIDTH..][..WIDTH]))
            .collect();
        let weights = softmax(scores);
        for (d, out) in out[row * LATENT..][..LATENT].iter_mut().enumerate() {
            let products = cached.iter().zip(&weights);
            let sum: f32 = products
                .map(|(cached, weight)| weight * task.cache[cached * WIDTH + d].widen())
                .sum();
            *out = T::narrow(task.value_scale * sum);
        }
    }
}

fn dot<T: Element, C: Element>(a: &[T], b: &[C]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a.widen() * b.widen()).sum()
}

fn softmax(mut scores: Vec<f32>) -> Vec<f32> {
    let largest = scores.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    for score in &mut scores {
        *score = (*score - largest).exp();
    }
    let total: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= total);
    scores
}
