//! Decode attention over a paged cache as a problem: tensors, cost, and checkable units.
//!
//! Query `i` of the `q_len` new tokens of a sequence sees the cache up to and including its own
//! token: the first `length - q_len + 1 + i` positions. A query that sees nothing, as in an empty
//! sequence, has output 0.
//!
//! An FP8 cache holds codes; a key is its code times `k_scale`, a value its code times `v_scale`.

use contender::{Cost, Math, Problem, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Fill, Inputs, TensorSpec};

use super::answers;
use super::shape::{DecodeShape, KvLayout, KvType};
use crate::arithmetic::{exact, rounded};
use crate::paged::answers::sampled_units;
use crate::paged::PageTable;

/// Codes of an FP8 cache: most of the type's range, as with calibrated scales.
const CODES: Fill = Fill::Uniform {
    low: -240.0,
    high: 240.0,
};

/// One decode step of one batch.
#[derive(Clone, Debug)]
pub struct DecodeProblem {
    pub shape: DecodeShape,
    /// The host's copy of the page table and the lengths, for planning.
    pub table: PageTable,
    /// 1 / sqrt(head_dim).
    pub scale: f32,
    /// Factors for keys and values of the cache: 1 except for FP8.
    pub k_scale: f32,
    pub v_scale: f32,
    statement: Statement,
}

impl DecodeProblem {
    /// # Panics
    /// If the shape is not a valid attention shape, or its pages do not fit in 31 bits.
    pub fn new(shape: DecodeShape, dtype: DType, workload: Workload) -> Self {
        assert!(
            shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads),
            "{} query heads cannot share {} KV heads",
            shape.heads,
            shape.kv_heads
        );
        let table = PageTable::of(&shape.lengths, shape.page_size, &workload);
        let queries = [shape.batch(), shape.q_len, shape.heads, shape.head_dim];
        let page = match shape.layout {
            KvLayout::Nhd => [shape.page_size, shape.kv_heads],
            KvLayout::Hnd => [shape.kv_heads, shape.page_size],
        };
        let pool = [table.pool_pages, page[0], page[1], shape.head_dim];
        let [indptr, indices, last_page_len, kv_len] = table.tensors();
        let cache = |name| match shape.kv_type {
            KvType::Same => TensorSpec::input(name, dtype, &pool),
            KvType::Fp8 => TensorSpec::input(name, DType::F8E4M3, &pool).filled(CODES),
        };
        let (k_scale, v_scale) = shape.kv_type.scales();
        Self {
            statement: Statement {
                op: "decode",
                dtype,
                workload,
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
            },
            scale: shape.scale(),
            k_scale,
            v_scale,
            shape,
            table,
        }
    }
}

impl Problem for DecodeProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The queries, every cached token of every head once, and the output. Unowned pages, the unused
    /// part of a last page, and the page table are not counted.
    fn cost(&self) -> Cost {
        let shape = &self.shape;
        let seen = self.table.visible_in_all(shape.q_len);
        let cached = 2 * self.table.tokens() * shape.kv_heads * shape.head_dim;
        let queries = self.statement.tensor("q").bytes() as f64;
        let element = self.statement.tensor("k_pages").dtype.size_bytes();
        Cost {
            // Two products with two operations per element.
            flops: 4.0 * seen as f64 * shape.heads as f64 * shape.head_dim as f64,
            read_bytes: (cached * element) as f64 + queries,
            written_bytes: queries,
            math: Math::TensorCore(self.dtype()),
        }
    }

    fn units(&self) -> usize {
        answers::units(&self.shape)
    }

    fn sampled_units(&self) -> usize {
        sampled_units(&self.shape.lengths, 1 << 20, (8, 64))
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f64>(&self.shape, &self.table, inputs, unit, exact)
    }

    /// As on tensor cores: f32 sums, weights rounded to the type before they multiply the values.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f32>(&self.shape, &self.table, inputs, unit, rounded)
    }
}
