//! Multi-head latent attention decode over a paged cache: tensors, cost, and checkable units.
//!
//! All heads read one cache: a row of 576 per token, 512 latent and 64 rotary, as servers store it.
//! A head's score is the product of its query with the row; its value is the latent part. Queries
//! are already projected into the latent space. Visible positions and the output of an empty
//! sequence are as in decode attention.
//!
//! An FP8 cache holds codes; an element of a row is its code times `cache_scale`.

use contender::{Cost, Family, Math, Problem, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Inputs, Slots, TensorSpec};

use super::answers;
use super::shape::{MlaShape, MLA_LATENT, MLA_WIDTH};
use crate::arithmetic::{exact, rounded};
use crate::attention_kinds::{Attention, Levels, Tokens};
use crate::paged::answers::sampled_units;
use crate::paged::{in_any_order, PageTable};

/// One decode step of one batch.
#[derive(Clone, Debug)]
pub struct MlaDecodeProblem {
    pub shape: MlaShape,
    /// The host's copy of the page table and the lengths, for planning.
    pub table: PageTable,
    pub scale: f32,
    /// Factor of the cache's elements: 1 except for FP8.
    pub cache_scale: f32,
    statement: Statement,
}

impl MlaDecodeProblem {
    /// # Panics
    /// If there is no sequence or no head, or the pages do not fit in 31 bits.
    pub fn new(shape: MlaShape, dtype: DType, workload: Workload) -> Self {
        Self::with_table(shape, dtype, workload, 0)
    }

    /// The same with sequences, pages and a scale of a seed: nobody can know them before.
    pub fn seeded(mut shape: MlaShape, dtype: DType, workload: Workload, seed: u64) -> Self {
        in_any_order(&mut shape.lengths, seed);
        Self::with_table(shape, dtype, workload, seed)
    }

    fn with_table(shape: MlaShape, dtype: DType, workload: Workload, seed: u64) -> Self {
        assert!(shape.heads > 0, "there is at least one head");
        let table = PageTable::of(&shape.lengths, shape.page_size, seed, &workload);
        let queries = |width| [shape.batch(), shape.q_len, shape.heads, width];
        let pool = [table.pool_pages, shape.page_size, MLA_WIDTH];
        let [indptr, indices, last_page_len, kv_len] = table.tensors();
        let (cache_dtype, most) = shape.kv_type.stored(dtype);
        let live = tokens(&|level| table.levels(level)).all(-most, most);
        // Keys and values are one row, with one scale.
        let (cache_scale, _) = shape.kv_type.scales(seed);
        Self {
            statement: Statement {
                op: "mla_decode",
                dtype,
                workload,
                tensors: vec![
                    TensorSpec::input("q", dtype, &queries(MLA_WIDTH)),
                    TensorSpec::input("cache", cache_dtype, &pool).filled(live),
                    indptr,
                    indices,
                    last_page_len,
                    kv_len,
                    TensorSpec::output("out", dtype, &queries(MLA_LATENT)),
                ],
            },
            scale: shape.scale(),
            cache_scale,
            shape,
            table,
        }
    }
}

/// A token's keys and values are one row of the pool.
fn tokens<'a>(levels: &'a Levels<'a>) -> Tokens<'a> {
    let slots = Slots::rows(MLA_WIDTH);
    Tokens { slots, levels }
}

impl Problem for MlaDecodeProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The queries, every cached token once for all heads, and the output; not the page table.
    fn cost(&self) -> Cost {
        let shape = &self.shape;
        let seen = self.table.visible_in_all(shape.q_len);
        let element = self.statement.tensor("cache").dtype.size_bytes();
        let cached = self.table.tokens() * MLA_WIDTH * element;
        let queries = self.statement.tensor("q").bytes();
        Cost {
            // Two operations per element: for the scores, and for the values.
            flops: 2.0 * seen as f64 * shape.heads as f64 * (MLA_WIDTH + MLA_LATENT) as f64,
            read_bytes: (cached + queries) as f64,
            written_bytes: self.statement.tensor("out").bytes() as f64,
            math: Math::TensorCore(self.dtype()),
        }
    }

    fn families(&self) -> Vec<Family> {
        Attention {
            statement: &self.statement,
            queries: "q",
            keys: "cache",
            values: None,
            dim: MLA_WIDTH,
            scale: self.scale,
            key_codes: 1.0 / self.cache_scale,
            value: 1.0,
            large_value: 1.0,
            tokens: tokens(&|level| self.table.levels(level)),
        }
        .families()
    }

    fn units(&self) -> usize {
        answers::units(&self.shape)
    }

    fn sampled_units(&self) -> usize {
        sampled_units(&self.shape.lengths, 1 << 18, (6, 16))
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let (shape, table, scale) = (&self.shape, &self.table, self.cache_scale);
        answers::unit::<f64>(shape, table, scale, inputs, unit, exact)
    }

    /// As on tensor cores: f32 sums, weights rounded to the type before they multiply the values.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let (shape, table, scale) = (&self.shape, &self.table, self.cache_scale);
        answers::unit::<f32>(shape, table, scale, inputs, unit, rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mla::suites::MlaSuite;
    use crate::paged::KvType;
    use crate::testing::{
        assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
    };

    fn problem(lengths: &[usize], heads: usize, q_len: usize) -> MlaDecodeProblem {
        problem_over(KvType::Same, lengths, heads, q_len)
    }

    fn problem_over(
        kv_type: KvType,
        lengths: &[usize],
        heads: usize,
        q_len: usize,
    ) -> MlaDecodeProblem {
        let shape = MlaShape {
            lengths: lengths.to_vec(),
            q_len,
            heads,
            page_size: 4,
            kv_type,
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
        for kv_type in [KvType::Same, KvType::Fp8] {
            let problem = problem_over(kv_type, &[3, 10], 5, 2);
            let cache_scale = f64::from(problem.cache_scale);
            let inputs = Inputs::new(problem.tensors(), 5);
            let (q, cache) = (inputs.tensor("q"), inputs.tensor("cache"));
            // The first of two queries of sequence 1, head 4, sees nine of ten positions.
            let (row, dim) = (2 * 5 + 4, 77);
            let (mut top, mut total) = (0.0, 0.0);
            for token in 0..9 {
                let cached = problem.table.row(1, token);
                let score: f64 = (0..576)
                    .map(|d| q.get(row * 576 + d) * (cache.get(cached * 576 + d) * cache_scale))
                    .sum();
                let weight = (score * f64::from(problem.scale)).exp();
                top += weight * cache.get(cached * 576 + dim) * cache_scale;
                total += weight;
            }
            // Two units of heads per token: 0 to 3, and 4.
            let slice = &problem.oracle(&inputs, 2 * 2 + 1)[0];
            assert_eq!(slice.start, row * 512);
            assert!((slice.values[dim] - top / total).abs() < 1e-13);
        }
    }

    #[test]
    fn honest_values_are_near_and_representable() {
        for kv_type in [KvType::Same, KvType::Fp8] {
            let problem = problem_over(kv_type, &[200, 0], 4, 1);
            assert_honest_is_near(&problem, &[0], 4.0);
            assert_honest_on_families(&problem, &[0, 1], 4.0);
            let inputs = Inputs::new(problem.tensors(), 5);
            assert!(problem.oracle(&inputs, 1)[0]
                .values
                .iter()
                .all(|&v| v == 0.0));
        }
    }

    #[test]
    fn cost_counts_the_cache_once_for_all_heads() {
        let cost = problem(&[9, 0, 1], 5, 1).cost();
        let rows = 3.0 * 5.0 * 2.0;
        assert_eq!(cost.read_bytes, 10.0 * 576.0 * 2.0 + rows * 576.0);
        assert_eq!(cost.written_bytes, rows * 512.0);
        assert_eq!(cost.flops, 2.0 * 10.0 * 5.0 * (576.0 + 512.0));
    }
    #[test]
    fn an_fp8_cache_has_half_the_bytes_and_values_of_the_same_size() {
        let problem = problem_over(KvType::Fp8, &[9, 0, 1], 5, 1);
        let queries = 3.0 * 5.0 * 576.0 * 2.0;
        let cost = problem.cost();
        assert_eq!(cost.read_bytes, 10.0 * 576.0 + queries);
        assert_eq!(cost.written_bytes, 3.0 * 5.0 * 512.0 * 2.0);
        let inputs = Inputs::new(problem.tensors(), 3);
        let codes = inputs
            .tensor("cache")
            .range(problem.table.row(0, 3) * 576, 576);
        assert!(codes.iter().all(|&code| DType::F8E4M3.round(code) == code));
        let largest = codes.iter().fold(0.0, |top: f64, code| top.max(code.abs()));
        let scaled = largest * f64::from(problem.cache_scale);
        assert!((0.8..=1.1).contains(&scaled), "{scaled}");
    }

    #[test]
    fn nobody_knows_the_scale_of_codes_before() {
        let scale = |kv_type, seed| {
            let shape = problem_over(kv_type, &[1], 1, 1).shape;
            let workload = MlaSuite::custom(&shape);
            MlaDecodeProblem::seeded(shape, DType::Bf16, workload, seed).cache_scale
        };
        assert_ne!(scale(KvType::Fp8, 1), scale(KvType::Fp8, 2));
        assert_eq!(scale(KvType::Same, 1), 1.0);
    }
}
