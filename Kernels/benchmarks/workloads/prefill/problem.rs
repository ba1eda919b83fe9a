//! Variable-length attention over whole prompts as a problem: tensors, cost, and what is checked.

use contender::{Cost, Math, Problem, Slice, Workload};
use numeric::DType;
use serde_json::Value;
use tensor::{Fill, Inputs, TensorSpec};

use super::answers;
use super::shape::{cumulative, BadPrefill, PrefillShape};

/// Places of the tensors in the list that contenders get.
pub(crate) const QUERIES: usize = 0;
pub(crate) const KEYS: usize = 1;
pub(crate) const VALUES: usize = 2;
pub(crate) const OUT: usize = 5;
pub(crate) const LSE: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrefillOp {
    Prefill,
    /// Also writes the natural logarithm of each row's sum of exponentials.
    PrefillLse,
}

impl PrefillOp {
    pub fn name(self) -> &'static str {
        match self {
            PrefillOp::Prefill => "prefill",
            PrefillOp::PrefillLse => "prefill_lse",
        }
    }

    pub fn has_lse(self) -> bool {
        self == PrefillOp::PrefillLse
    }
}

/// One batch. The tensors, in the order in which contenders get their buffers:
///
/// | tensor | type | shape |
/// |---|---|---|
/// | q | dtype | [total_q, heads, head_dim] |
/// | k | dtype | [total_kv, kv_heads, head_dim] |
/// | v | dtype | [total_kv, kv_heads, head_dim] |
/// | cu_q | i32 | [batch + 1] |
/// | cu_kv | i32 | [batch + 1] |
/// | out | dtype | [total_q, heads, head_dim] |
/// | lse (prefill_lse only) | f32 | [total_q, heads] |
#[derive(Clone, Debug)]
pub struct PrefillProblem {
    pub op: PrefillOp,
    pub shape: PrefillShape,
    /// Factor of the scores before the softmax.
    pub scale: f32,
    pub dtype: DType,
    pub(crate) starts_q: Vec<usize>,
    pub(crate) starts_kv: Vec<usize>,
    workload: Workload,
    tensors: Vec<TensorSpec>,
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
        let scale = 1.0 / (shape.head_dim as f32).sqrt();
        let mut workload = workload;
        let mut axis = |name: &str, value: Value| workload.axes.insert(name.to_owned(), value);
        axis("heads", Value::from(shape.heads));
        axis("kv_heads", Value::from(shape.kv_heads));
        axis("head_dim", Value::from(shape.head_dim));
        axis("causal", Value::from(shape.causal));
        axis("scale", Value::from(scale.to_string()));
        axis("q_lens", Value::from(shape.q_lens.clone()));
        axis("kv_lens", Value::from(shape.kv_lens.clone()));
        Ok(Self {
            op,
            scale,
            dtype,
            starts_q: cumulative(&shape.q_lens),
            starts_kv: cumulative(&shape.kv_lens),
            tensors: tensors(op, &shape, dtype),
            shape,
            workload,
        })
    }
}

fn tensors(op: PrefillOp, shape: &PrefillShape, dtype: DType) -> Vec<TensorSpec> {
    let queries = [shape.total_q(), shape.heads, shape.head_dim];
    let keys = [shape.total_kv(), shape.kv_heads, shape.head_dim];
    // The variance of scaled scores is then 1, as it is for queries and keys of a standard normal
    // distribution: the softmax is neither flat nor one key's.
    let wide = Fill::Uniform {
        low: -3.0,
        high: 3.0,
    };
    let starts = |name, lengths: &[usize]| {
        let starts: Vec<f64> = cumulative(lengths).iter().map(|&s| s as f64).collect();
        let bytes = DType::I32.encode(&starts);
        TensorSpec::input(name, DType::I32, &[starts.len()]).filled(Fill::Bytes(bytes.into()))
    };
    let mut tensors = vec![
        TensorSpec::input("q", dtype, &queries).filled(wide),
        TensorSpec::input("k", dtype, &keys),
        TensorSpec::input("v", dtype, &keys),
        starts("cu_q", &shape.q_lens),
        starts("cu_kv", &shape.kv_lens),
        TensorSpec::output("out", dtype, &queries),
    ];
    if op.has_lse() {
        tensors.push(TensorSpec::output("lse", DType::F32, &queries[..2]));
    }
    tensors
}

impl Problem for PrefillProblem {
    fn op(&self) -> &str {
        self.op.name()
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

    /// Two products of head_dim multiplications and additions for every visible pair, and every
    /// tensor once.
    fn cost(&self) -> Cost {
        let shape = &self.shape;
        let flops = 4.0 * (shape.head_dim * shape.heads) as f64 * shape.visible_pairs();
        let math = match self.dtype {
            DType::F32 => Math::Fp32,
            dtype => Math::TensorCore(dtype),
        };
        Cost::of_whole_tensors(&self.tensors, flops, math)
    }

    /// Pairs of a query and a head.
    fn units(&self) -> usize {
        self.shape.total_q() * self.shape.heads
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f64>(self, inputs, unit, |_, value| value)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f32>(self, inputs, unit, |dtype, value| dtype.round(value))
    }
}

#[cfg(test)]
#[path = "problem_test.rs"]
mod tests;
