//! Multi-head latent attention decode over a paged cache: tensors, cost, and checkable units.
//!
//! All heads read one cache: a row of 576 per token, 512 latent and 64 rotary, as servers store it.
//! A head's score is the product of its query with the row; its value is the latent part. Queries
//! are already projected into the latent space. Visible positions and the output of an empty
//! sequence are as in decode attention.

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
    statement: Statement,
}

impl MlaDecodeProblem {
    /// # Panics
    /// If there is no sequence or no head, or the pages do not fit in 31 bits.
    pub fn new(shape: MlaShape, dtype: DType, workload: Workload) -> Self {
        Self::with_table(shape, dtype, workload, 0)
    }

    /// The same with sequences and pages of a seed: nobody can know them before.
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
        let live = tokens(&|level| table.levels(level)).all(-1.0, 1.0);
        Self {
            statement: Statement {
                op: "mla_decode",
                dtype,
                workload,
                tensors: vec![
                    TensorSpec::input("q", dtype, &queries(MLA_WIDTH)),
                    TensorSpec::input("cache", dtype, &pool).filled(live),
                    indptr,
                    indices,
                    last_page_len,
                    kv_len,
                    TensorSpec::output("out", dtype, &queries(MLA_LATENT)),
                ],
            },
            scale: shape.scale(),
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
        let cached = self.table.tokens() * MLA_WIDTH * self.dtype().size_bytes();
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
            key_codes: 1.0,
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
        answers::unit::<f64>(&self.shape, &self.table, inputs, unit, exact)
    }

    /// As on tensor cores: f32 sums, weights rounded to the type before they multiply the values.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f32>(&self.shape, &self.table, inputs, unit, rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mla::suites::MlaSuite;
    use crate::testing::{
        assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
    };

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
        let (q, cache) = (inputs.tensor("q"), inputs.tensor("cache"));
        // The first of two queries of sequence 1, head 4, sees nine of ten positions.
        let (row, dim) = (2 * 5 + 4, 77);
        let (mut top, mut total) = (0.0, 0.0);
        for token in 0..9 {
            let cached = problem.table.row(1, token);
            let score: f64 = (0..576)
                .map(|d| q.get(row * 576 + d) * cache.get(cached * 576 + d))
                .sum();
            let weight = (score * f64::from(problem.scale)).exp();
            top += weight * cache.get(cached * 576 + dim);
            total += weight;
        }
        // Two units of heads per token: 0 to 3, and 4.
        let slice = &problem.oracle(&inputs, 2 * 2 + 1)[0];
        assert_eq!(slice.start, row * 512);
        assert!((slice.values[dim] - top / total).abs() < 1e-13);
    }

    #[test]
    fn honest_values_are_near_and_representable() {
        let problem = problem(&[200, 0], 4, 1);
        assert_honest_is_near(&problem, &[0], 4.0);
        assert_honest_on_families(&problem, &[0, 1], 4.0);
        let inputs = Inputs::new(problem.tensors(), 5);
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
