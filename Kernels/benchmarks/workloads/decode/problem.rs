//! Decode attention over a paged cache as a problem: tensors, cost, and checkable units.
//!
//! Query `i` of the `q_len` new tokens of a sequence sees the cache up to and including its own
//! token: the first `length - q_len + 1 + i` positions. A query that sees nothing, as in an empty
//! sequence, has output 0.
//!
//! An FP8 cache holds codes; a key is its code times `k_scale`, a value its code times `v_scale`.

use contender::{Cost, Family, Math, Problem, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Fill, Inputs, Slots, TensorSpec};

use super::answers;
use super::shape::{DecodeShape, KvLayout};
use crate::arithmetic::{exact, rounded};
use crate::attention_kinds::{Attention, Levels, Tokens};
use crate::paged::answers::sampled_units;
use crate::paged::{in_any_order, KvType, PageTable, CODE};

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
        Self::with_table(shape, dtype, workload, 0)
    }

    /// The same with sequences, pages and scales of a seed: nobody can know them before.
    pub fn seeded(mut shape: DecodeShape, dtype: DType, workload: Workload, seed: u64) -> Self {
        in_any_order(&mut shape.lengths, seed);
        Self::with_table(shape, dtype, workload, seed)
    }

    fn with_table(shape: DecodeShape, dtype: DType, workload: Workload, seed: u64) -> Self {
        assert!(
            shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads),
            "{} query heads cannot share {} KV heads",
            shape.heads,
            shape.kv_heads
        );
        let table = PageTable::of(&shape.lengths, shape.page_size, seed, &workload);
        let queries = [shape.batch(), shape.q_len, shape.heads, shape.head_dim];
        let page = match shape.layout {
            KvLayout::Nhd => [shape.page_size, shape.kv_heads],
            KvLayout::Hnd => [shape.kv_heads, shape.page_size],
        };
        let pool = [table.pool_pages, page[0], page[1], shape.head_dim];
        let [indptr, indices, last_page_len, kv_len] = table.tensors();
        let (cache_dtype, most) = shape.kv_type.stored(dtype);
        let live: Fill = tokens(&shape, &|level| table.levels(level))
            .all(-most, most)
            .into();
        let cache = |name| TensorSpec::input(name, cache_dtype, &pool).filled(live.clone());
        let (k_scale, v_scale) = shape.kv_type.scales(seed);
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

/// Where the tokens are in the pool.
fn tokens<'a>(shape: &DecodeShape, levels: &'a Levels<'a>) -> Tokens<'a> {
    let token = shape.kv_heads * shape.head_dim;
    let slots = Slots {
        outer: shape.page_size * token,
        inner: shape.page_size,
        run: match shape.layout {
            KvLayout::Nhd => token,
            KvLayout::Hnd => shape.head_dim,
        },
    };
    Tokens { slots, levels }
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

    fn families(&self) -> Vec<Family> {
        let (value, large_value) = match self.shape.kv_type {
            KvType::Same => (1.0, 64.0),
            KvType::Fp8 => (CODE, 448.0),
        };
        let levels = |level| self.table.levels(level);
        let tokens = tokens(&self.shape, &levels);
        Attention {
            statement: &self.statement,
            queries: "q",
            keys: "k_pages",
            values: Some(("v_pages", tokens.slots)),
            dim: self.shape.head_dim,
            scale: self.scale,
            key_codes: 1.0 / self.k_scale,
            value,
            large_value,
            tokens,
        }
        .families()
    }

    fn units(&self) -> usize {
        answers::units(&self.shape)
    }

    fn sampled_units(&self) -> usize {
        sampled_units(&self.shape.lengths, 1 << 20, (8, 64))
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let scales = (self.k_scale, self.v_scale);
        answers::unit::<f64>(&self.shape, &self.table, scales, inputs, unit, exact)
    }

    /// As on tensor cores: f32 sums, weights rounded to the type before they multiply the values.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let scales = (self.k_scale, self.v_scale);
        answers::unit::<f32>(&self.shape, &self.table, scales, inputs, unit, rounded)
    }
}
