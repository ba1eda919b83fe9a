//! Correct answers of latent attention decode: a few heads of one new token.

use contender::Slice;
use reference::Real;
use tensor::Inputs;

use super::shape::{MlaShape, MLA_LATENT, MLA_WIDTH};
use crate::arithmetic::{slice, Store};
use crate::paged::answers::{attended, Cache, Rows};
use crate::paged::PageTable;

/// Heads per unit: few, because each takes a pass over the whole sequence.
const UNIT_HEADS: usize = 4;

pub fn units(shape: &MlaShape) -> usize {
    shape.batch() * shape.q_len * shape.heads.div_ceil(UNIT_HEADS)
}

pub fn unit<R: Real + Send + Sync>(
    shape: &MlaShape,
    table: &PageTable,
    cache_scale: f32,
    inputs: &Inputs,
    unit: usize,
    store: Store,
) -> Vec<Slice> {
    let groups = shape.heads.div_ceil(UNIT_HEADS);
    let (token, head) = (unit / groups, unit % groups * UNIT_HEADS);
    let (sequence, query) = (token / shape.q_len, token % shape.q_len);
    let first = token * shape.heads + head;
    let visible = table.visible(sequence, shape.q_len, query);
    let queries: Vec<(usize, usize)> = (first..first + UNIT_HEADS.min(shape.heads - head))
        .map(|row| (row * MLA_WIDTH, visible))
        .collect();
    let rows = |width| Rows {
        tensor: inputs.tensor("cache"),
        scale: cache_scale,
        width,
    };
    let cache = Cache {
        keys: rows(MLA_WIDTH),
        values: rows(MLA_LATENT),
        first: |token| table.row(sequence, token) * MLA_WIDTH,
    };
    let out = attended::<R>(inputs, &queries, &cache, shape.scale(), store);
    let values = out.into_iter().flatten();
    vec![slice(inputs, "out", first * MLA_LATENT, values, store)]
}
