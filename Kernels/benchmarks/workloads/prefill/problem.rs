//! Variable-length attention over whole prompts as a problem: tensors, cost, and checkable units.

use contender::{Cost, Family, Math, Piece, Places, Problem, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Fill, Inputs, Slots, TensorSpec};

use super::answers;
use super::shape::{cumulative, BadPrefill, PrefillOp, PrefillShape};
use crate::arithmetic::{exact, magnitude_of_attention, rounded};
use crate::attention_kinds::{Attention, LevelOf, Tokens};

/// One batch. The tensors, in the order of the contenders' buffers:
///
/// | tensor | type | shape |
/// |---|---|---|
/// | q | dtype | [total_q, heads, head_dim] |
/// | k | dtype | [total_kv, kv_heads, head_dim] |
/// | v | dtype | [total_kv, kv_heads, value_dim] |
/// | cu_q | i32 | [batch + 1] |
/// | cu_kv | i32 | [batch + 1] |
/// | out | dtype | [total_q, heads, value_dim] |
/// | lse (prefill_lse only) | f32 | [total_q, heads] |
#[derive(Clone, Debug)]
pub struct PrefillProblem {
    pub op: PrefillOp,
    pub shape: PrefillShape,
    /// Factor of the scores before the softmax.
    pub scale: f32,
    statement: Statement,
}

impl PrefillProblem {
    /// With the usual scale, 1 / sqrt(head_dim).
    pub fn new(
        op: PrefillOp,
        shape: PrefillShape,
        dtype: DType,
        workload: Workload,
    ) -> Result<Self, BadPrefill> {
        shape.validate()?;
        let shape = shape.normal();
        let mut statement = Statement {
            op: op.name(),
            dtype,
            workload,
            tensors: tensors(op, &shape, dtype),
        };
        statement.axis("heads", shape.heads);
        statement.axis("kv_heads", shape.kv_heads);
        statement.axis("head_dim", shape.head_dim);
        if let Some(value_dim) = shape.value_dim {
            statement.axis("value_dim", value_dim);
        }
        statement.axis("causal", shape.causal);
        statement.axis("scale", shape.scale().to_string());
        statement.axis("q_lens", shape.q_lens.clone());
        statement.axis("kv_lens", shape.kv_lens.clone());
        Ok(Self {
            op,
            scale: shape.scale(),
            shape,
            statement,
        })
    }

    /// The batch in pieces of a few hundred queries of one sequence, each with the keys that they see,
    /// and the places of their tensors in the whole.
    pub fn cut(&self) -> Vec<(Self, Places)> {
        let shape = &self.shape;
        let (starts_q, starts_kv) = (cumulative(&shape.q_lens), cumulative(&shape.kv_lens));
        let mut pieces = Vec::new();
        for sequence in 0..shape.batch() {
            let queries = shape.q_lens[sequence];
            for first in (0..queries).step_by(PIECE_QUERIES) {
                let last = queries.min(first + PIECE_QUERIES) - 1;
                let piece = PrefillShape {
                    q_lens: vec![last + 1 - first],
                    kv_lens: vec![shape.visible(sequence, last)],
                    ..shape.clone()
                };
                let workload = self.workload().clone();
                let problem = Self::new(self.op, piece, self.dtype(), workload);
                let problem = problem.expect("a part of a valid batch is one");
                let query = (starts_q[sequence] + first) * shape.heads;
                let key = starts_kv[sequence] * shape.kv_heads;
                let place = |spec: &TensorSpec| match spec.name {
                    "q" => Some(query * shape.head_dim),
                    "out" => Some(query * shape.value_dim()),
                    "lse" => Some(query),
                    "k" => Some(key * shape.head_dim),
                    "v" => Some(key * shape.value_dim()),
                    _ => None,
                };
                let places = self.tensors().iter().enumerate();
                let places = places.map(|(tensor, spec)| place(spec).map(|first| (tensor, first)));
                let places = places.collect();
                pieces.push((problem, places));
            }
        }
        pieces
    }

    /// The same as an operation of another name.
    pub fn named(mut self, op: &'static str) -> Self {
        self.statement.op = op;
        self
    }
}

/// Queries of one piece: tens of pieces of a long prompt.
const PIECE_QUERIES: usize = 256;

fn tensors(op: PrefillOp, shape: &PrefillShape, dtype: DType) -> Vec<TensorSpec> {
    let queries = |dim| [shape.total_q(), shape.heads, dim];
    let keys = |dim| [shape.total_kv(), shape.kv_heads, dim];
    let (dim, value_dim) = (shape.head_dim, shape.value_dim());
    // Scaled scores then have a variance of 1, as with normally distributed queries and keys: the
    // softmax is neither flat nor dominated by one key.
    let wide = Fill::Uniform {
        low: -3.0,
        high: 3.0,
    };
    let starts = |name, lengths: &[usize]| {
        let starts: Vec<i32> = cumulative(lengths).iter().map(|&s| s as i32).collect();
        TensorSpec::indices(name, &[starts.len()], &starts)
    };
    let mut tensors = vec![
        TensorSpec::input("q", dtype, &queries(dim)).filled(wide),
        TensorSpec::input("k", dtype, &keys(dim)),
        TensorSpec::input("v", dtype, &keys(value_dim)),
        starts("cu_q", &shape.q_lens),
        starts("cu_kv", &shape.kv_lens),
        TensorSpec::output("out", dtype, &queries(value_dim)),
    ];
    if op.has_lse() {
        tensors.push(TensorSpec::output("lse", DType::F32, &queries(dim)[..2]));
    }
    tensors
}

impl Problem for PrefillProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Products of head_dim and of value_dim multiply-adds per visible pair, and every tensor once.
    fn cost(&self) -> Cost {
        let shape = &self.shape;
        let products = shape.head_dim + shape.value_dim();
        let flops = 2.0 * (products * shape.heads) as f64 * shape.visible_pairs();
        let math = match self.dtype() {
            DType::F32 => Math::Fp32,
            dtype => Math::TensorCore(dtype),
        };
        Cost::of_whole_tensors(self.tensors(), flops, math)
    }

    fn pieces(&self) -> Vec<Piece> {
        let piece = |(problem, places)| Piece {
            problem: Box::new(problem),
            places,
        };
        self.cut().into_iter().map(piece).collect()
    }

    fn families(&self) -> Vec<Family> {
        let shape = &self.shape;
        let levels = |level: LevelOf| {
            let of_sequence = |&length| (0..length).map(move |position| level(position, length));
            shape.kv_lens.iter().flat_map(of_sequence).collect()
        };
        Attention {
            statement: &self.statement,
            queries: "q",
            keys: "k",
            values: Some(("v", Slots::rows(shape.kv_heads * shape.value_dim()))),
            dim: shape.head_dim,
            scale: self.scale,
            key_codes: 1.0,
            value: 1.0,
            large_value: 64.0,
            tokens: Tokens {
                slots: Slots::rows(shape.kv_heads * shape.head_dim),
                levels: &levels,
            },
        }
        .families()
    }

    /// Pairs of a query and a head.
    fn units(&self) -> usize {
        self.shape.total_q() * self.shape.heads
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f64>(&self.shape, inputs, unit, exact)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f32>(&self.shape, inputs, unit, rounded)
    }

    fn magnitude(&self, tensor: usize) -> f64 {
        magnitude_of_attention(self.tensors()[tensor].name)
    }
}
