//! Correct answers of decode attention: all queries of a sequence that share a KV head.

use contender::Slice;
use reference::Real;
use tensor::Inputs;

use super::shape::DecodeShape;
use crate::arithmetic::{slice, Store};
use crate::paged::answers::{attended, Cache, Rows};
use crate::paged::PageTable;

/// One unit per sequence and KV head, because its queries share what is expensive: the keys and
/// values.
pub fn units(shape: &DecodeShape) -> usize {
    shape.batch() * shape.kv_heads
}

pub fn unit<R: Real + Send + Sync>(
    shape: &DecodeShape,
    table: &PageTable,
    (k_scale, v_scale): (f32, f32),
    inputs: &Inputs,
    unit: usize,
    store: Store,
) -> Vec<Slice> {
    // The shortest non-empty sequence comes first, because errors are largest when few values are
    // averaged, and the gate always checks the first unit.
    let mut order: Vec<usize> = (0..shape.batch()).collect();
    order.sort_by_key(|&sequence| (shape.lengths[sequence] == 0, shape.lengths[sequence]));
    let (sequence, kv_head) = (order[unit / shape.kv_heads], unit % shape.kv_heads);
    let group = shape.group();
    let queries: Vec<(usize, usize)> = (0..shape.q_len * group)
        .map(|row| {
            let (query, head) = (row / group, kv_head * group + row % group);
            let visible = table.visible(sequence, shape.q_len, query);
            (shape.query_row(sequence, query, head), visible)
        })
        .collect();
    let rows = |name, scale| Rows {
        tensor: inputs.tensor(name),
        scale,
        width: shape.head_dim,
    };
    let cache = Cache {
        keys: rows("k_pages", k_scale),
        values: rows("v_pages", v_scale),
        first: |token| shape.cache_row(table, sequence, token, kv_head),
    };
    let out = attended::<R>(inputs, &queries, &cache, shape.scale(), store);
    let tokens = out.chunks(group).enumerate();
    tokens
        .map(|(query, heads)| {
            let start = shape.query_row(sequence, query, kv_head * group);
            slice(inputs, "out", start, heads.iter().flatten().copied(), store)
        })
        .collect()
}
