//! Decode with multi-head latent attention over a paged cache: tensors, cost, and what can be
//! checked.
//!
//! All heads read one cache: a row of 576 a token, 512 of them latent and 64 rotary, as servers
//! keep it. A head's score is the product of its query with the row; its value is the latent part.
//! Queries are already projected into the latent space. Which positions a query sees, and what an
//! empty sequence gives, is as in [`crate::DecodeProblem`].

use contender::{Cost, Math, Problem, Slice, Workload};
use numeric::DType;
use reference::attention_decode::{attend, Query};
use reference::Real;
use tensor::{Inputs, TensorSpec};

use super::suites::MlaShape;
use crate::paged::PageTable;

/// Width of a latent row, and of the output.
pub const MLA_LATENT: usize = 512;
/// Width of a rotary row.
pub const MLA_ROPE: usize = 64;
/// Width of a query, and of a token in the cache: the latent part, then the rotary one.
pub const MLA_WIDTH: usize = MLA_LATENT + MLA_ROPE;

/// Heads of one unit: few, because each takes a pass over the whole sequence.
const UNIT_HEADS: usize = 4;

/// Places of the tensors in the problem's list.
pub mod mla_tensor {
    pub const Q: usize = 0;
    pub const CACHE: usize = 1;
    pub const PAGE_INDPTR: usize = 2;
    pub const PAGE_INDICES: usize = 3;
    pub const LAST_PAGE_LEN: usize = 4;
    pub const KV_LEN: usize = 5;
    pub const OUT: usize = 6;
}
use mla_tensor as at;

/// One decode step of one batch.
#[derive(Clone, Debug)]
pub struct MlaDecodeProblem {
    pub shape: MlaShape,
    /// The host's copy of the page table and the lengths, for planning.
    pub table: PageTable,
    pub dtype: DType,
    /// 1 / sqrt(192): of the head before projection, 128 without and 64 with rotation.
    pub scale: f32,
    workload: Workload,
    tensors: Vec<TensorSpec>,
}

impl MlaDecodeProblem {
    /// # Panics
    /// If there is no sequence or no head, or the pages do not fit in 31 bits.
    pub fn new(shape: MlaShape, dtype: DType, workload: Workload) -> Self {
        assert!(
            !shape.lengths.is_empty(),
            "a batch has at least one sequence"
        );
        assert!(shape.heads > 0, "there is at least one head");
        let table = PageTable::scattered(&shape.lengths, shape.page_size)
            .unwrap_or_else(|error| panic!("{}: {error}", workload.name));
        let queries = |width| [shape.batch(), shape.q_len, shape.heads, width];
        let pool = [table.pool_pages, shape.page_size, MLA_WIDTH];
        let [indptr, indices, last_page_len, kv_len] = table.tensors();
        Self {
            tensors: vec![
                TensorSpec::input("q", dtype, &queries(MLA_WIDTH)),
                TensorSpec::input("cache", dtype, &pool),
                indptr,
                indices,
                last_page_len,
                kv_len,
                TensorSpec::output("out", dtype, &queries(MLA_LATENT)),
            ],
            scale: 1.0 / 192f32.sqrt(),
            shape,
            table,
            dtype,
            workload,
        }
    }

    /// A token's row in the pool.
    pub fn cache_row(&self, sequence: usize, token: usize) -> usize {
        let (page, place) = self.table.place(sequence, token);
        page * self.shape.page_size + place
    }

    fn head_groups(&self) -> usize {
        self.shape.heads.div_ceil(UNIT_HEADS)
    }

    /// A few heads of one new token; `store` rounds to the type.
    fn unit<R: Real + Send + Sync>(
        &self,
        inputs: &Inputs,
        unit: usize,
        store: fn(DType, f64) -> f64,
    ) -> Vec<Slice> {
        let shape = &self.shape;
        let (token, group) = (unit / self.head_groups(), unit % self.head_groups());
        let (sequence, query) = (token / shape.q_len, token % shape.q_len);
        let first = token * shape.heads + group * UNIT_HEADS;
        let heads = UNIT_HEADS.min(shape.heads - group * UNIT_HEADS);
        let queries: Vec<Query<R>> = (first..first + heads)
            .map(|row| {
                let values = inputs.range(at::Q, row * MLA_WIDTH, MLA_WIDTH);
                Query {
                    values: values.into_iter().map(R::of).collect(),
                    visible: self.table.visible(sequence, shape.q_len, query),
                }
            })
            .collect();
        // As much of a token's row as there is room for.
        let read = |token, out: &mut [R]| {
            let mut row = [0.0; MLA_WIDTH];
            let row = &mut row[..out.len()];
            inputs.range_into(at::CACHE, self.cache_row(sequence, token) * MLA_WIDTH, row);
            for (out, value) in out.iter_mut().zip(row) {
                *out = R::of(*value);
            }
        };
        let rows = attend(
            &queries,
            R::of(f64::from(self.scale)),
            MLA_LATENT,
            |run, out| {
                for (token, out) in run.zip(out.chunks_exact_mut(MLA_WIDTH)) {
                    read(token, out);
                }
            },
            |run, out| {
                for (token, out) in run.zip(out.chunks_exact_mut(MLA_LATENT)) {
                    read(token, out);
                }
            },
            |weight: R| R::of(store(self.dtype, weight.to_f64())),
        );
        let values = rows.iter().flatten();
        vec![Slice {
            tensor: at::OUT,
            start: first * MLA_LATENT,
            values: values
                .map(|value| store(self.dtype, value.to_f64()))
                .collect(),
        }]
    }
}

impl Problem for MlaDecodeProblem {
    fn op(&self) -> &str {
        "mla_decode"
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

    /// The queries, every cached token once for all heads, and the output; not the page table.
    fn cost(&self) -> Cost {
        let shape = &self.shape;
        let seen = self.table.visible_in_all(shape.q_len);
        let cached = self.table.tokens() * MLA_WIDTH * self.dtype.size_bytes();
        let queries = self.tensors[at::Q].bytes();
        Cost {
            // Two operations an element: of the scores' product, and of the values'.
            flops: 2.0 * seen as f64 * shape.heads as f64 * (MLA_WIDTH + MLA_LATENT) as f64,
            read_bytes: (cached + queries) as f64,
            written_bytes: self.tensors[at::OUT].bytes() as f64,
            math: Math::TensorCore(self.dtype),
        }
    }

    fn units(&self) -> usize {
        self.shape.batch() * self.shape.q_len * self.head_groups()
    }

    /// A unit takes passes over a whole sequence of wide rows, in f64 and in f32.
    fn sampled_units(&self) -> usize {
        let longest = self.shape.lengths.iter().max().unwrap_or(&0);
        ((1 << 18) / longest.max(&1)).clamp(6, 16)
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
mod tests {
    use super::*;
    use crate::mla::MlaSuite;
    use crate::testing::assert_units_cover_outputs_once;

    fn problem(lengths: &[usize], heads: usize, q_len: usize) -> MlaDecodeProblem {
        let shape = MlaShape {
            lengths: lengths.to_vec(),
            q_len,
            heads,
            page_size: 4,
        };
        let workload = MlaSuite::custom(&shape);
        MlaDecodeProblem::new(shape, DType::Bf16, workload)
    }

    #[test]
    fn units_cover_every_output_element_once() {
        assert_units_cover_outputs_once(&problem(&[9, 0, 1], 6, 2));
    }

    #[test]
    fn the_oracle_agrees_with_the_definition() {
        let problem = problem(&[3, 10], 5, 2);
        let inputs = Inputs::new(problem.tensors(), 5);
        // The first of two queries of sequence 1, head 4, sees nine of ten positions.
        let (row, dim) = (2 * 5 + 4, 77);
        let (mut top, mut total) = (0.0, 0.0);
        for token in 0..9 {
            let cached = problem.cache_row(1, token);
            let score: f64 = (0..576)
                .map(|d| inputs.get(at::Q, row * 576 + d) * inputs.get(at::CACHE, cached * 576 + d))
                .sum();
            let weight = (score * f64::from(problem.scale)).exp();
            top += weight * inputs.get(at::CACHE, cached * 576 + dim);
            total += weight;
        }
        // Two units of heads a token: 0 to 3, and 4.
        let slice = &problem.oracle(&inputs, 2 * 2 + 1)[0];
        assert_eq!(slice.start, row * 512);
        assert!((slice.values[dim] - top / total).abs() < 1e-13);
    }

    #[test]
    fn honest_values_are_near_and_representable() {
        let problem = problem(&[200, 0], 4, 1);
        let inputs = Inputs::new(problem.tensors(), 5);
        let (oracle, honest) = (problem.oracle(&inputs, 0), problem.honest(&inputs, 0));
        for (o, h) in oracle[0].values.iter().zip(&honest[0].values) {
            assert_eq!(problem.dtype.round(*h), *h);
            assert!((o - h).abs() <= 0.01, "{o} and {h}");
        }
        assert!(problem.oracle(&inputs, 1)[0]
            .values
            .iter()
            .all(|&v| v == 0.0));
    }

    #[test]
    fn cost_counts_the_cache_once_for_all_heads() {
        let cost = problem(&[9, 0, 1], 5, 1).cost();
        let rows = 3.0 * 5.0 * 2.0;
        assert_eq!(cost.read_bytes, 10.0 * 576.0 * 2.0 + rows * 576.0);
        assert_eq!(cost.written_bytes, rows * 512.0);
        assert_eq!(cost.flops, 2.0 * 10.0 * 5.0 * (576.0 + 512.0));
    }
}
