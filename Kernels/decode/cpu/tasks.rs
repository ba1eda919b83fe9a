//! The two operations, threaded.

use rayon::prelude::*;

use crate::attend::{attend, Cache, Queries};
use crate::Element;

/// Widths of a latent and of a rotary row.
pub const LATENT: usize = 512;
pub const ROPE: usize = 64;
/// Width of a query and of a cached token: the latent part, then the rotary part.
pub const WIDTH: usize = LATENT + ROPE;

/// Heads per task of [`latent`]: they share each read of the cache.
const LATENT_HEADS: usize = 8;

/// Decode attention in which each KV head serves `heads / kv_heads` query heads.
pub struct Decode<'a, T, C = T> {
    /// [batch, q_len, heads, dim]
    pub q: &'a [T],
    pub keys: &'a [C],
    pub values: &'a [C],
    pub batch: usize,
    pub q_len: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub dim: usize,
    /// Scales scores, including the keys' scale.
    pub scale: f32,
    pub value_scale: f32,
    /// Positions visible to a query of a sequence.
    pub visible: &'a (dyn Fn(usize, usize) -> usize + Sync),
    /// First element of a cache row: by sequence, token, head.
    pub row: &'a (dyn Fn(usize, usize, usize) -> usize + Sync),
}

/// Decode attention in which all heads share one latent cache.
pub struct Latent<'a, T, C = T> {
    /// [batch, q_len, heads, LATENT + ROPE]
    pub q: &'a [T],
    /// Rows of LATENT + ROPE.
    pub cache: &'a [C],
    pub batch: usize,
    pub q_len: usize,
    pub heads: usize,
    /// Scales scores, including the cache's scale.
    pub scale: f32,
    pub value_scale: f32,
    pub visible: &'a (dyn Fn(usize, usize) -> usize + Sync),
    /// Cache row: by sequence and token.
    pub row: &'a (dyn Fn(usize, usize) -> usize + Sync),
}

/// One task per sequence and KV head; `out` is shaped like `q`.
pub fn decode<T: Element, C: Element>(task: &Decode<T, C>, out: &mut [T]) {
    let (group, dim) = (task.heads / task.kv_heads, task.dim);
    let caches: Vec<Vec<f32>> = (0..task.batch * task.kv_heads)
        .into_par_iter()
        .map(|cache| {
            let (sequence, kv_head) = (cache / task.kv_heads, cache % task.kv_heads);
            let mut values = vec![0.0; task.q_len * group * dim];
            for (query, values) in values.chunks_exact_mut(group * dim).enumerate() {
                let start = query_row(task, sequence, query, kv_head * group);
                T::widen_all(&task.q[start..][..group * dim], values);
            }
            let visible: Vec<usize> = (0..task.q_len * group)
                .map(|row| (task.visible)(sequence, row / group))
                .collect();
            let queries = Queries {
                values: &values,
                width: dim,
                visible: &visible,
            };
            let mut read = |token: usize, key: &mut [f32], value: &mut [f32]| {
                let start = (task.row)(sequence, token, kv_head);
                C::widen_all(&task.keys[start..][..dim], key);
                C::widen_all(&task.values[start..][..dim], value);
            };
            let cache = Cache {
                value_width: dim,
                read: &mut read,
                shared: false,
            };
            let mut rows = attend(&queries, cache, task.scale);
            rows.iter_mut().for_each(|value| *value *= task.value_scale);
            rows
        })
        .collect();
    for (cache, rows) in caches.iter().enumerate() {
        let (sequence, kv_head) = (cache / task.kv_heads, cache % task.kv_heads);
        for (query, rows) in rows.chunks_exact(group * dim).enumerate() {
            let start = query_row(task, sequence, query, kv_head * group);
            store(&mut out[start..][..group * dim], rows);
        }
    }
}

fn query_row<T, C>(task: &Decode<T, C>, sequence: usize, query: usize, head: usize) -> usize {
    ((sequence * task.q_len + query) * task.heads + head) * task.dim
}

fn store<T: Element>(out: &mut [T], values: &[f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = T::narrow(*value);
    }
}

/// One task per new token and a few heads; `out` is [batch, q_len, heads, LATENT].
pub fn latent<T: Element, C: Element>(task: &Latent<T, C>, out: &mut [T]) {
    let groups = task.heads.div_ceil(LATENT_HEADS);
    let blocks: Vec<(usize, Vec<f32>)> = (0..task.batch * task.q_len * groups)
        .into_par_iter()
        .map(|block| {
            let (token, first) = (block / groups, block % groups * LATENT_HEADS);
            let (sequence, query) = (token / task.q_len, token % task.q_len);
            let heads = LATENT_HEADS.min(task.heads - first);
            let mut values = vec![0.0; heads * WIDTH];
            for (head, values) in values.chunks_exact_mut(WIDTH).enumerate() {
                let row = token * task.heads + first + head;
                T::widen_all(&task.q[row * WIDTH..][..WIDTH], values);
            }
            let queries = Queries {
                values: &values,
                width: WIDTH,
                visible: &vec![(task.visible)(sequence, query); heads],
            };
            let mut read = |token: usize, key: &mut [f32], _: &mut [f32]| {
                let row = (task.row)(sequence, token);
                C::widen_all(&task.cache[row * WIDTH..][..WIDTH], key);
            };
            let cache = Cache {
                value_width: LATENT,
                read: &mut read,
                shared: true,
            };
            let start = (token * task.heads + first) * LATENT;
            let mut rows = attend(&queries, cache, task.scale);
            rows.iter_mut().for_each(|value| *value *= task.value_scale);
            (start, rows)
        })
        .collect();
    for (start, rows) in &blocks {
        store(&mut out[*start..][..rows.len()], rows);
    }
}
