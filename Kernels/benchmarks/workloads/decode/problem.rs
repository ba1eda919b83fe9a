//! Decode attention over a paged cache as a problem: tensors, cost, and what can be checked.
//!
//! Query `i` of the `q_len` new tokens of a sequence sees the cache up to and with its own token:
//! the first `length - q_len + 1 + i` positions. A query that sees nothing, as in an empty
//! sequence, has the output 0.
//!
//! A cache of FP8 holds codes; a key is its code times `k_scale`, a value its code times `v_scale`.

use contender::{Cost, Math, Problem, Slice, Workload};
use numeric::DType;
use reference::attention_decode::{attend, Query};
use reference::Real;
use tensor::{Fill, Inputs, TensorSpec};

use super::shape::{DecodeShape, KvLayout, KvType};
use crate::paged::PageTable;

/// Codes of an FP8 cache: most of the type's range, as calibrated scales leave it.
const CODES: Fill = Fill::Uniform {
    low: -240.0,
    high: 240.0,
};
/// Scales that bring them to about 1, and are no powers of two.
const FP8_K_SCALE: f32 = 0.004;
const FP8_V_SCALE: f32 = 0.005;

/// Places of the tensors in the problem's list.
pub mod decode_tensor {
    pub const Q: usize = 0;
    pub const K_PAGES: usize = 1;
    pub const V_PAGES: usize = 2;
    pub const PAGE_INDPTR: usize = 3;
    pub const PAGE_INDICES: usize = 4;
    pub const LAST_PAGE_LEN: usize = 5;
    pub const KV_LEN: usize = 6;
    pub const OUT: usize = 7;
}
use decode_tensor as at;

/// One decode step of one batch.
#[derive(Clone, Debug)]
pub struct DecodeProblem {
    pub shape: DecodeShape,
    /// The host's copy of the page table and the lengths, for planning.
    pub table: PageTable,
    pub dtype: DType,
    /// 1 / sqrt(head_dim).
    pub scale: f32,
    /// What keys and values of the cache are multiplied with: 1 but for FP8.
    pub k_scale: f32,
    pub v_scale: f32,
    workload: Workload,
    tensors: Vec<TensorSpec>,
    /// Sequences in the order of their units. The shortest with tokens comes first, because errors
    /// are largest where few values are averaged, and the gate always looks at the first unit.
    order: Vec<usize>,
}

impl DecodeProblem {
    /// # Panics
    /// If the shape is not one of attention, or its pages do not fit in 31 bits.
    pub fn new(shape: DecodeShape, dtype: DType, workload: Workload) -> Self {
        assert!(
            shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads),
            "{} heads do not share {} of the cache",
            shape.heads,
            shape.kv_heads
        );
        assert!(
            !shape.lengths.is_empty(),
            "a batch has at least one sequence"
        );
        let table = PageTable::scattered(&shape.lengths, shape.page_size)
            .unwrap_or_else(|error| panic!("{}: {error}", workload.name));
        let queries = [shape.batch(), shape.q_len, shape.heads, shape.head_dim];
        let page = match shape.layout {
            KvLayout::Nhd => [shape.page_size, shape.kv_heads],
            KvLayout::Hnd => [shape.kv_heads, shape.page_size],
        };
        let pool = [table.pool_pages, page[0], page[1], shape.head_dim];
        let [indptr, indices, last_page_len, kv_len] = table.tensors();
        let mut order: Vec<usize> = (0..shape.batch()).collect();
        order.sort_by_key(|sequence| (shape.lengths[*sequence] == 0, shape.lengths[*sequence]));
        let (k_scale, v_scale) = match shape.kv_type {
            KvType::Same => (1.0, 1.0),
            KvType::Fp8 => (FP8_K_SCALE, FP8_V_SCALE),
        };
        let cache = |name| match shape.kv_type {
            KvType::Same => TensorSpec::input(name, dtype, &pool),
            KvType::Fp8 => TensorSpec::input(name, DType::F8E4M3, &pool).filled(CODES),
        };
        Self {
            order,
            tensors: vec![
                TensorSpec::input("q", dtype, &queries),
                cache("k_pages"),
                cache("v_pages"),
                indptr,
                indices,
                last_page_len,
                kv_len,
                TensorSpec::output("out", dtype, &queries),
            ],
            scale: 1.0 / (shape.head_dim as f32).sqrt(),
            k_scale,
            v_scale,
            shape,
            table,
            dtype,
            workload,
        }
    }

    /// First element of a token's row of one head in the pools of keys and of values.
    pub fn cache_row(&self, sequence: usize, token: usize, kv_head: usize) -> usize {
        let (page, place) = self.table.place(sequence, token);
        let DecodeShape {
            page_size,
            kv_heads,
            head_dim,
            ..
        } = self.shape;
        let row = match self.shape.layout {
            KvLayout::Nhd => (page * page_size + place) * kv_heads + kv_head,
            KvLayout::Hnd => (page * kv_heads + kv_head) * page_size + place,
        };
        row * head_dim
    }

    /// First element of a row of queries or of the output.
    pub fn query_row(&self, sequence: usize, query: usize, head: usize) -> usize {
        ((sequence * self.shape.q_len + query) * self.shape.heads + head) * self.shape.head_dim
    }

    /// All queries of a sequence that share a head of the cache; `store` rounds to the type.
    fn unit<R: Real + Send + Sync>(
        &self,
        inputs: &Inputs,
        unit: usize,
        store: fn(DType, f64) -> f64,
    ) -> Vec<Slice> {
        let shape = &self.shape;
        let (sequence, kv_head) = (self.order[unit / shape.kv_heads], unit % shape.kv_heads);
        let (group, width) = (shape.group(), shape.head_dim);
        let stored = |value: R| R::of(store(self.dtype, value.to_f64()));
        let queries: Vec<Query<R>> = (0..shape.q_len * group)
            .map(|row| {
                let (query, head) = (row / group, kv_head * group + row % group);
                let start = self.query_row(sequence, query, head);
                let values = inputs.range(at::Q, start, width);
                Query {
                    values: values.into_iter().map(R::of).collect(),
                    visible: self.table.visible(sequence, shape.q_len, query),
                }
            })
            .collect();
        let read = |tensor, scale: f32, run: std::ops::Range<usize>, out: &mut [R]| {
            let mut row = vec![0.0; width];
            for (token, out) in run.zip(out.chunks_exact_mut(width)) {
                inputs.range_into(tensor, self.cache_row(sequence, token, kv_head), &mut row);
                for (out, value) in out.iter_mut().zip(&row) {
                    *out = R::of(*value * f64::from(scale));
                }
            }
        };
        let rows = attend(
            &queries,
            R::of(f64::from(self.scale)),
            width,
            |run, out| read(at::K_PAGES, self.k_scale, run, out),
            |run, out| read(at::V_PAGES, self.v_scale, run, out),
            stored,
        );
        rows.chunks(group)
            .enumerate()
            .map(|(query, heads)| Slice {
                tensor: at::OUT,
                start: self.query_row(sequence, query, kv_head * group),
                values: heads
                    .iter()
                    .flatten()
                    .map(|value| store(self.dtype, value.to_f64()))
                    .collect(),
            })
            .collect()
    }
}

impl Problem for DecodeProblem {
    fn op(&self) -> &str {
        "decode"
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// The queries, every cached token of every head once, and the output. Pages that no sequence
    /// owns, and the rest of a last page, are not counted; nor is the page table.
    fn cost(&self) -> Cost {
        let shape = &self.shape;
        let seen = self.table.visible_in_all(shape.q_len);
        let cached = 2 * self.table.tokens() * shape.kv_heads * shape.head_dim;
        let queries = self.tensors[at::Q].bytes() as f64;
        Cost {
            // Two products of two operations an element.
            flops: 4.0 * seen as f64 * shape.heads as f64 * shape.head_dim as f64,
            read_bytes: (cached * self.tensors[at::K_PAGES].dtype.size_bytes()) as f64 + queries,
            written_bytes: queries,
            math: Math::TensorCore(self.dtype),
        }
    }

    /// One per sequence and head of the cache, because its queries share what is expensive: the
    /// keys and values.
    fn units(&self) -> usize {
        self.shape.batch() * self.shape.kv_heads
    }

    /// A unit takes passes over a whole sequence, in f64 and in f32.
    fn sampled_units(&self) -> usize {
        let longest = self.shape.lengths.iter().max().unwrap_or(&0);
        ((1 << 20) / longest.max(&1)).clamp(8, 64)
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.unit::<f64>(inputs, unit, |_, value| value)
    }

    /// As tensor cores do it: f32 sums, weights rounded to the type before they meet the values.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.unit::<f32>(inputs, unit, |dtype, value| dtype.round(value))
    }
}

#[cfg(test)]
#[path = "problem_test.rs"]
mod tests;
