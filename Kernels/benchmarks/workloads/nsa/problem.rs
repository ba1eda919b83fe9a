//! Native sparse attention as problems: tensors, cost, and checkable units.

use contender::{Cost, Family, Math, Problem, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Fill, Inputs, Shaped, Slots, TensorSpec};

use super::answers::Case;
use super::op::{NsaOp, GATED};
use super::shape::{NsaShape, Selection};
use crate::arithmetic::{exact, magnitude_of_attention, rounded};
use crate::attention_kinds::{Attention, LevelOf, Tokens};
use crate::kinds::{outlier_columns, uneven_rows, uniform, LARGE, OUTLIERS, UNEVEN_ROWS};

#[derive(Clone, Debug)]
pub struct NsaProblem {
    pub op: NsaOp,
    pub shape: NsaShape,
    /// 1 / sqrt(dim).
    pub scale: f32,
    /// For the selected branch.
    selection: Option<Selection>,
    /// Pairs of a query head and a visible key.
    pairs: f64,
    statement: Statement,
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

    pub fn new(op: NsaOp, shape: NsaShape, dtype: DType, workload: Workload) -> Self {
        Self::seeded(op, shape, dtype, workload, 0)
    }

    /// Any operation, with blocks from [`Selection::drawn`] if it reads any.
    pub fn seeded(op: NsaOp, shape: NsaShape, dtype: DType, workload: Workload, seed: u64) -> Self {
        let pairs = match op {
            NsaOp::Selected => {
                return Self::selected(Selection::drawn(shape, seed), dtype, workload)
            }
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
        workload: Workload,
    ) -> Self {
        let mut statement = Statement {
            op: op.name(),
            dtype,
            workload,
            tensors: match op {
                NsaOp::Gated => gated_tensors(shape, dtype),
                _ => branch_tensors(op, selection.as_ref(), shape, dtype),
            },
        };
        if op != NsaOp::Gated {
            statement.axis("scale", shape.scale().to_string());
            statement.axis("causal", true);
        }
        if op == NsaOp::Sliding {
            statement.axis("window", shape.window);
        }
        Self {
            op,
            shape,
            scale: shape.scale(),
            selection,
            pairs: keys_read * shape.heads_per_group() as f64,
            statement,
        }
    }

    fn case(&self) -> Case<'_> {
        Case {
            op: self.op,
            shape: self.shape,
            selection: self.selection.as_ref(),
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
        let blocks = [shape.tokens(), shape.groups, shape.selected];
        tensors.push(TensorSpec::indices("blocks", &blocks, selection.indices()));
    }
    tensors
}

fn gated_tensors(shape: NsaShape, dtype: DType) -> Vec<TensorSpec> {
    let heads = [shape.tokens(), shape.heads, shape.dim];
    let gate = |name| {
        // The range of a sigmoid.
        let unit = Fill::Uniform {
            low: 0.0,
            high: 1.0,
        };
        TensorSpec::input(name, dtype, &heads[..2]).filled(unit)
    };
    let branches = GATED.map(|(branch, _)| TensorSpec::input(branch, dtype, &heads));
    let gates = GATED.map(|(_, name)| gate(name));
    let inputs = branches.into_iter().chain(gates);
    inputs
        .chain([TensorSpec::output("out", dtype, &heads)])
        .collect()
}

/// Of the first branch; the others stay as they are.
fn gated_families(statement: &Statement, shape: NsaShape) -> Vec<Family> {
    let (branch, elements) = (GATED[0].0, statement.tensor("out").elements());
    let outliers = Shaped::flat(-1.0, 1.0).times(outlier_columns(shape.dim, 32.0));
    let rows = uneven_rows(
        shape.dim,
        elements,
        &[(-1.0, 1.0), (0.0, 0.0), (0.75, 0.75)],
    );
    vec![
        statement.family(OUTLIERS, vec![(branch, outliers.into())]),
        statement.family(LARGE, vec![(branch, uniform(90.0, 110.0))]),
        statement.family(UNEVEN_ROWS, vec![(branch, rows.into())]),
    ]
}

impl Problem for NsaProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Two products over the visible keys, counted exactly, or three products and two sums per
    /// element; every tensor is moved once.
    fn cost(&self) -> Cost {
        let (flops, math) = match self.op {
            NsaOp::Gated => {
                let elements = self.statement.tensor("out").elements();
                (5.0 * elements as f64, Math::Fp32)
            }
            _ => {
                let flops = 4.0 * self.pairs * self.shape.dim as f64;
                (flops, Math::TensorCore(self.dtype()))
            }
        };
        Cost::of_whole_tensors(self.tensors(), flops, math)
    }

    fn families(&self) -> Vec<Family> {
        let (shape, statement) = (self.shape, &self.statement);
        if self.op == NsaOp::Gated {
            return gated_families(statement, shape);
        }
        let rows = shape.rows(self.op);
        let levels = |level: LevelOf| {
            let of_sequence = |_| (0..rows).map(|position| level(position, rows));
            (0..shape.batch).flat_map(of_sequence).collect()
        };
        let slots = Slots::rows(shape.groups * shape.dim);
        Attention {
            statement,
            queries: "queries",
            keys: "keys",
            values: Some(("values", slots)),
            dim: shape.dim,
            scale: self.scale,
            key_codes: 1.0,
            value: 1.0,
            large_value: 64.0,
            tokens: Tokens {
                slots,
                levels: &levels,
            },
        }
        .families()
    }

    fn units(&self) -> usize {
        self.case().units()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.case().unit::<f64>(inputs, unit, exact)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.case().unit::<f32>(inputs, unit, rounded)
    }

    fn magnitude(&self, tensor: usize) -> f64 {
        magnitude_of_attention(self.tensors()[tensor].name)
    }
}
