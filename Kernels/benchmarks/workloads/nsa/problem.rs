//! Native sparse attention as problems: tensors, cost, and what can be checked.

use contender::{Cost, Math, Problem, Slice, Workload};
use numeric::DType;
use serde_json::Value;
use tensor::{Fill, Inputs, TensorSpec};

use super::answers;
use super::op::NsaOp;
use super::shape::{NsaShape, Selection};

/// Places in the list of tensors of a branch.
pub mod nsa_tensor {
    pub const QUERIES: usize = 0;
    pub const KEYS: usize = 1;
    pub const VALUES: usize = 2;
    pub const OUT: usize = 3;
    pub const LSE: usize = 4;
    /// Of the selected branch only.
    pub const BLOCKS: usize = 5;
}

/// Places in the list of tensors of the gated sum: the branches' outputs and their gates, in the
/// order compressed, selected, sliding.
pub mod nsa_gated_tensor {
    pub const OUTPUTS: [usize; 3] = [0, 1, 2];
    pub const GATES: [usize; 3] = [3, 4, 5];
    pub const OUT: usize = 6;
}

#[derive(Clone, Debug)]
pub struct NsaProblem {
    pub op: NsaOp,
    pub shape: NsaShape,
    pub dtype: DType,
    /// 1 / sqrt(dim).
    pub scale: f32,
    /// Of the selected branch.
    pub(crate) selection: Option<Selection>,
    /// Pairs of a query head and a key that it sees.
    pairs: f64,
    workload: Workload,
    tensors: Vec<TensorSpec>,
}

impl NsaProblem {
    /// The branch over selected blocks.
    pub fn selected(selection: Selection, dtype: DType, workload: Workload) -> Self {
        let (shape, pairs) = (selection.shape(), selection.keys_read());
        Self::with(
            NsaOp::Selected,
            Some(selection),
            pairs,
            shape,
            dtype,
            workload,
        )
    }

    /// Any operation, with blocks as [`Selection::drawn`] has them where it reads some.
    pub fn new(op: NsaOp, shape: NsaShape, dtype: DType, workload: Workload) -> Self {
        let pairs = match op {
            NsaOp::Selected => return Self::selected(Selection::drawn(shape), dtype, workload),
            NsaOp::Gated => 0.0,
            NsaOp::Compressed | NsaOp::Sliding => {
                let seen = |position| shape.visible(op, position).len() as f64;
                let of_sequence: f64 = (0..shape.sequence).map(seen).sum();
                of_sequence * (shape.batch * shape.groups) as f64
            }
        };
        Self::with(op, None, pairs, shape, dtype, workload)
    }

    fn with(
        op: NsaOp,
        selection: Option<Selection>,
        keys_read: f64,
        shape: NsaShape,
        dtype: DType,
        mut workload: Workload,
    ) -> Self {
        let scale = (shape.dim as f32).sqrt().recip();
        let mut axis = |name: &str, value| workload.axes.insert(name.to_owned(), value);
        if op != NsaOp::Gated {
            axis("scale", Value::from(scale.to_string()));
            axis("causal", Value::from(true));
        }
        if op == NsaOp::Sliding {
            axis("window", Value::from(shape.window));
        }
        let tensors = match op {
            NsaOp::Gated => gated_tensors(shape, dtype),
            _ => branch_tensors(op, selection.as_ref(), shape, dtype),
        };
        Self {
            op,
            shape,
            dtype,
            scale,
            selection,
            pairs: keys_read * shape.heads_per_group() as f64,
            workload,
            tensors,
        }
    }
}

fn branch_tensors(
    op: NsaOp,
    selection: Option<&Selection>,
    shape: NsaShape,
    dtype: DType,
) -> Vec<TensorSpec> {
    let queries = [shape.tokens(), shape.heads, shape.dim];
    let rows = shape.batch * shape.rows(op);
    let keys = [rows, shape.groups, shape.dim];
    let mut tensors = vec![
        TensorSpec::input("queries", dtype, &queries),
        TensorSpec::input("keys", dtype, &keys),
        TensorSpec::input("values", dtype, &keys),
        TensorSpec::output("out", dtype, &queries),
        TensorSpec::output("lse", DType::F32, &queries[..2]),
    ];
    if let Some(selection) = selection {
        let indices = selection.indices().iter();
        let bytes: Vec<u8> = indices.flat_map(|index| index.to_le_bytes()).collect();
        let blocks = [shape.tokens(), shape.groups, shape.selected];
        let blocks = TensorSpec::input("blocks", DType::I32, &blocks);
        tensors.push(blocks.filled(Fill::Bytes(bytes.into())));
    }
    tensors
}

fn gated_tensors(shape: NsaShape, dtype: DType) -> Vec<TensorSpec> {
    let heads = [shape.tokens(), shape.heads, shape.dim];
    let gate = |name| {
        // What a sigmoid gives.
        let unit = Fill::Uniform {
            low: 0.0,
            high: 1.0,
        };
        TensorSpec::input(name, dtype, &heads[..2]).filled(unit)
    };
    vec![
        TensorSpec::input("compressed", dtype, &heads),
        TensorSpec::input("selected", dtype, &heads),
        TensorSpec::input("sliding", dtype, &heads),
        gate("gate_compressed"),
        gate("gate_selected"),
        gate("gate_sliding"),
        TensorSpec::output("out", dtype, &heads),
    ]
}

impl Problem for NsaProblem {
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

    /// Two products over the keys that are seen, counted exactly, or three products and two sums
    /// for each element; every tensor moved once.
    fn cost(&self) -> Cost {
        let (flops, math) = match self.op {
            NsaOp::Gated => {
                let elements = self.tensors[nsa_gated_tensor::OUT].elements();
                (5.0 * elements as f64, Math::Fp32)
            }
            _ => {
                let flops = 4.0 * self.pairs * self.shape.dim as f64;
                (flops, Math::TensorCore(self.dtype))
            }
        };
        Cost::of_whole_tensors(&self.tensors, flops, math)
    }

    /// Groups of a token; in the gated sum its heads.
    fn units(&self) -> usize {
        let per_token = match self.op {
            NsaOp::Gated => self.shape.heads,
            _ => self.shape.groups,
        };
        self.shape.tokens() * per_token
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::exact(self, inputs, unit)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::rounded(self, inputs, unit)
    }
}

#[cfg(test)]
#[path = "problem_test.rs"]
mod tests;
