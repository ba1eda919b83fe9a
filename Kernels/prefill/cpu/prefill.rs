//! Blocked attention with an online softmax, threaded over blocks of queries.
//!
//! A task owns all heads of a run of queries, whose outputs are contiguous. It widens each block of
//! keys and values once for all queries and heads that share it.

use host::{exp, largest, sum};
use rayon::prelude::*;

use crate::{Batch, Element};

/// Queries per task: enough to make widening the keys a small part of its work.
const QUERIES: usize = 16;
/// Keys per block: their scores stay in vector registers.
const KEYS: usize = 64;

pub fn prefill<T: Element>(batch: &Batch<T>, out: &mut [T], lse: Option<&mut [f32]>) {
    let mut tasks = tasks(batch, out, lse);
    // Longest first: with a causal mask, work grows along a sequence.
    tasks.sort_by_key(|task| std::cmp::Reverse(task.keys(batch) * task.queries));
    tasks.into_par_iter().with_max_len(1).for_each_init(
        || Scratch::new(batch),
        |scratch, task| task.run(batch, scratch),
    );
}

/// A run of queries of one sequence and its slice of the outputs.
struct Task<'a, T> {
    sequence: usize,
    /// Within the sequence.
    first: usize,
    queries: usize,
    out: &'a mut [T],
    lse: Option<&'a mut [f32]>,
}

fn tasks<'a, T: Element>(
    batch: &Batch<T>,
    mut out: &'a mut [T],
    mut lse: Option<&'a mut [f32]>,
) -> Vec<Task<'a, T>> {
    let mut tasks = Vec::new();
    for sequence in 0..batch.sequences() {
        let length = batch.queries(sequence).len();
        for first in (0..length).step_by(QUERIES) {
            let queries = QUERIES.min(length - first);
            let places = queries * batch.heads;
            let (own, rest) = out.split_at_mut(places * batch.value_dim);
            out = rest;
            let own_lse = lse.take().map(|all| {
                let (own, rest) = all.split_at_mut(places);
                lse = Some(rest);
                own
            });
            tasks.push(Task {
                sequence,
                first,
                queries,
                out: own,
                lse: own_lse,
            });
        }
    }
    tasks
}

/// A thread's scratch space.
struct Scratch {
    /// A block of keys, one column per key, so that a loop over keys vectorises.
    keys: Vec<f32>,
    values: Vec<f32>,
    row: Vec<f32>,
    rows: Vec<Row>,
}

/// One query of one head as it walks over the keys.
struct Row {
    query: Vec<f32>,
    /// Weighted sum of values, relative to `largest`.
    sums: Vec<f32>,
    largest: f32,
    total: f32,
}

impl Scratch {
    fn new<T>(batch: &Batch<T>) -> Self {
        let (width, value_width) = (batch.head_dim, batch.value_dim);
        let row = || Row {
            query: vec![0.0; width],
            sums: vec![0.0; value_width],
            largest: 0.0,
            total: 0.0,
        };
        Self {
            keys: vec![0.0; KEYS * width],
            values: vec![0.0; KEYS * value_width],
            row: vec![0.0; width],
            rows: (0..QUERIES * batch.group()).map(|_| row()).collect(),
        }
    }
}

impl<T: Element> Task<'_, T> {
    /// Keys that the last query sees.
    fn keys(&self, batch: &Batch<T>) -> usize {
        batch.visible(self.sequence, self.first + self.queries - 1)
    }

    fn run(mut self, batch: &Batch<T>, scratch: &mut Scratch) {
        for kv_head in 0..batch.kv_heads {
            self.start(batch, kv_head, &mut scratch.rows);
            for first_key in (0..self.keys(batch)).step_by(KEYS) {
                self.block(batch, kv_head, first_key, scratch);
            }
            self.finish(batch, kv_head, &scratch.rows);
        }
    }

    /// Offset in the task's outputs of a query and one of the heads that share `kv_head`.
    fn place(batch: &Batch<T>, kv_head: usize, index: usize) -> usize {
        let (query, member) = (index / batch.group(), index % batch.group());
        query * batch.heads + kv_head * batch.group() + member
    }

    fn start(&self, batch: &Batch<T>, kv_head: usize, rows: &mut [Row]) {
        let first = (batch.queries(self.sequence).start + self.first) * batch.heads;
        let count = self.queries * batch.group();
        for (index, row) in rows[..count].iter_mut().enumerate() {
            let place = first + Self::place(batch, kv_head, index);
            let query = &batch.q[place * batch.head_dim..][..batch.head_dim];
            T::widen_all(query, &mut row.query);
            for element in &mut row.query {
                *element *= batch.scale;
            }
            row.sums.fill(0.0);
            (row.largest, row.total) = (f32::NEG_INFINITY, 0.0);
        }
    }

    fn block(&self, batch: &Batch<T>, kv_head: usize, first_key: usize, scratch: &mut Scratch) {
        let width = batch.value_dim;
        let start = batch.keys(self.sequence).start + first_key;
        let count = KEYS.min(self.keys(batch) - first_key);
        for key in 0..count {
            T::widen_all(batch.key(start + key, kv_head), &mut scratch.row);
            for (element, &value) in scratch.row.iter().enumerate() {
                scratch.keys[element * KEYS + key] = value;
            }
            let row = batch.value(start + key, kv_head);
            T::widen_all(row, &mut scratch.values[key * width..][..width]);
        }
        let rows = self.queries * batch.group();
        for (index, row) in scratch.rows[..rows].iter_mut().enumerate() {
            let visible = batch.visible(self.sequence, self.first + index / batch.group());
            let count = visible.saturating_sub(first_key).min(count);
            if count > 0 {
                row.attend(&scratch.keys, &scratch.values, count);
            }
        }
    }

    fn finish(&mut self, batch: &Batch<T>, kv_head: usize, rows: &[Row]) {
        let count = self.queries * batch.group();
        for (index, row) in rows[..count].iter().enumerate() {
            let place = Self::place(batch, kv_head, index);
            let out = &mut self.out[place * batch.value_dim..][..batch.value_dim];
            for (out, sum) in out.iter_mut().zip(&row.sums) {
                *out = T::narrow(sum / row.total);
            }
            if let Some(lse) = self.lse.as_deref_mut() {
                lse[place] = row.largest + row.total.ln();
            }
        }
    }
}

impl Row {
    /// Folds in the first `count` keys of a block.
    fn attend(&mut self, keys: &[f32], values: &[f32], count: usize) {
        let mut scores = [0.0f32; KEYS];
        for (&element, column) in self.query.iter().zip(keys.chunks_exact(KEYS)) {
            for (score, &key) in scores.iter_mut().zip(column) {
                *score += element * key;
            }
        }
        let scores = &mut scores[..count];
        let largest = largest(scores).max(self.largest);
        for score in scores.iter_mut() {
            *score = exp(*score - largest);
        }
        if largest > self.largest {
            let factor = exp(self.largest - largest);
            self.total *= factor;
            for sum in &mut self.sums {
                *sum *= factor;
            }
            self.largest = largest;
        }
        self.total += sum(scores, |weight| weight);
        let width = self.sums.len();
        for (&weight, value) in scores.iter().zip(values.chunks_exact(width)) {
            for (sum, &value) in self.sums.iter_mut().zip(value) {
                *sum += weight * value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::plain_prefill;

    fn values(count: usize, salt: usize) -> Vec<f32> {
        let value = |index: usize| ((index * 7919 + salt) % 1009) as f32 / 504.5 - 1.0;
        (0..count).map(value).collect()
    }

    #[test]
    fn agrees_with_the_plain_loop() {
        let starts_q = [0, 1, 1, 40, 140];
        let starts_kv = [0, 1, 6, 100, 300];
        for (causal, heads, kv_heads, width, value_dim) in [
            (true, 6, 2, 64, 64),
            (false, 2, 2, 24, 24),
            (true, 4, 1, 24, 16),
            (false, 3, 3, 8, 40),
        ] {
            let (q, k, v) = (
                values(140 * heads * width, 1),
                values(300 * kv_heads * width, 2),
                values(300 * kv_heads * value_dim, 3),
            );
            let batch = Batch {
                q: &q,
                k: &k,
                v: &v,
                starts_q: &starts_q,
                starts_kv: &starts_kv,
                heads,
                kv_heads,
                head_dim: width,
                value_dim,
                causal,
                scale: 0.3,
            };
            let outputs = 140 * heads * value_dim;
            let (mut ours, mut plain) = (vec![9.0; outputs], vec![7.0; outputs]);
            let (mut lse, mut plain_lse) = (vec![9.0; 140 * heads], vec![7.0; 140 * heads]);
            prefill(&batch, &mut ours, Some(&mut lse));
            plain_prefill(&batch, &mut plain, Some(&mut plain_lse));
            let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(near(&ours, &plain) && near(&lse, &plain_lse));
        }
    }

    #[test]
    fn one_key_gives_its_value_in_narrow_types() {
        let elements: Vec<bf16> = values(8, 5).into_iter().map(bf16::from_f32).collect();
        let batch = Batch {
            q: &elements,
            k: &elements,
            v: &elements,
            starts_q: &[0, 1],
            starts_kv: &[0, 1],
            heads: 1,
            kv_heads: 1,
            head_dim: 8,
            value_dim: 8,
            causal: true,
            scale: 1.0,
        };
        let mut out = vec![bf16::ZERO; 8];
        prefill(&batch, &mut out, None);
        assert_eq!(out, elements);
    }
}
