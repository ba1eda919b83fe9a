//! A batch of sequences of different lengths, packed back to back.

use std::ops::Range;

/// Queries are `[total_q, heads, head_dim]`, keys `[total_kv, kv_heads, head_dim]`, values and outputs
/// the same with `value_dim`.
#[derive(Clone, Copy)]
pub struct Batch<'a, T> {
    pub q: &'a [T],
    pub k: &'a [T],
    pub v: &'a [T],
    /// Where each sequence starts, plus the end: one more entry than sequences.
    pub starts_q: &'a [i32],
    pub starts_kv: &'a [i32],
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub value_dim: usize,
    /// Query i of q sees keys 0 ..= i + kv - q; otherwise all keys. Every query sees at least one.
    pub causal: bool,
    pub scale: f32,
}

impl<T> Batch<'_, T> {
    pub(crate) fn sequences(&self) -> usize {
        self.starts_q.len() - 1
    }

    pub(crate) fn queries(&self, sequence: usize) -> Range<usize> {
        rows(self.starts_q, sequence)
    }

    pub(crate) fn keys(&self, sequence: usize) -> Range<usize> {
        rows(self.starts_kv, sequence)
    }

    /// Keys that a query sees, counted from the start of its sequence.
    pub(crate) fn visible(&self, sequence: usize, query: usize) -> usize {
        let keys = self.keys(sequence).len();
        if self.causal {
            query + 1 + keys - self.queries(sequence).len()
        } else {
            keys
        }
    }

    /// Query heads that share one KV head.
    pub(crate) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// One head's row of keys.
    pub(crate) fn key(&self, row: usize, kv_head: usize) -> &[T] {
        &self.k[(row * self.kv_heads + kv_head) * self.head_dim..][..self.head_dim]
    }

    /// One head's row of values.
    pub(crate) fn value(&self, row: usize, kv_head: usize) -> &[T] {
        &self.v[(row * self.kv_heads + kv_head) * self.value_dim..][..self.value_dim]
    }
}

fn rows(starts: &[i32], sequence: usize) -> Range<usize> {
    starts[sequence] as usize..starts[sequence + 1] as usize
}
