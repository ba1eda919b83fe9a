//! Row operations as problems: tensors, cost, and checkable units.
//!
//! Backward operations take what a forward pass saves (rstd, mean, lse, the softmax output) as
//! separate inputs, drawn around the values that a forward pass over the same inputs would give.
//! The gradients are then well defined, and every contender gets the same bytes.

use contender::{Cost, Math, Problem, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Fill, Inputs, TensorSpec};

use super::answers::{self, Arithmetic};
use super::op::NormOp;
use crate::arithmetic::{exact, rounded};
use crate::rows::RowShape;

/// Types of the tensors of a row operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormTypes {
    /// Activations and their gradients.
    pub activation: DType,
    /// Weights, biases and their gradients: f32, or the activations' type.
    pub weight: DType,
}

/// One row operation on one shape.
#[derive(Clone, Debug)]
pub struct NormProblem {
    pub op: NormOp,
    pub shape: RowShape,
    pub types: NormTypes,
    /// 0 if the operation has none.
    pub epsilon: f32,
    statement: Statement,
}

impl NormProblem {
    pub fn new(op: NormOp, shape: RowShape, types: NormTypes, workload: Workload) -> Self {
        let mut statement = Statement {
            op: op.name(),
            dtype: types.activation,
            workload,
            tensors: tensors(op, shape, types),
        };
        if op.has_weight() {
            statement.axis("weight_dtype", types.weight.to_string());
        }
        if let Some(epsilon) = op.epsilon() {
            statement.axis("epsilon", epsilon.to_string());
        }
        Self {
            op,
            shape,
            types,
            epsilon: op.epsilon().unwrap_or(0.0),
            statement,
        }
    }
}

/// The tensors of an operation, in the order of the contenders' buffers.
fn tensors(op: NormOp, shape: RowShape, types: NormTypes) -> Vec<TensorSpec> {
    let RowShape { rows, columns } = shape;
    let matrix = [rows, columns];
    let input = |name| TensorSpec::input(name, types.activation, &matrix);
    let output = |name| TensorSpec::output(name, types.activation, &matrix);
    let in_out = |name| TensorSpec::in_out(name, types.activation, &matrix);
    let weight = |name| TensorSpec::input(name, types.weight, &[columns]);
    let weight_gradient = |name| TensorSpec::output(name, types.weight, &[columns]);
    let per_row = |name, fill| TensorSpec::input(name, DType::F32, &[rows]).filled(fill);
    let row_output = |name| TensorSpec::output(name, DType::F32, &[rows]);
    let target = || {
        let below = u32::try_from(columns).expect("columns fit in 32 bits");
        TensorSpec::input("target", DType::I64, &[rows]).filled(Fill::Index { below })
    };
    // Uniform values in [-1, 1] have a mean of 0 and a root mean square of 1 / sqrt(3).
    let rstd = || per_row("rstd", around(3f32.sqrt(), 0.1));
    match op {
        NormOp::RmsNormForward => vec![input("x"), weight("weight"), output("out")],
        NormOp::RmsNormBackward => vec![
            input("x"),
            weight("weight"),
            input("out_gradient"),
            rstd(),
            output("x_gradient"),
            weight_gradient("weight_gradient"),
        ],
        NormOp::FusedAddRmsNorm => vec![in_out("x"), in_out("residual"), weight("weight")],
        NormOp::LayerNormForward => {
            vec![input("x"), weight("weight"), weight("bias"), output("out")]
        }
        NormOp::LayerNormBackward => vec![
            input("x"),
            weight("weight"),
            input("out_gradient"),
            per_row("mean", around(0.0, 0.1)),
            rstd(),
            output("x_gradient"),
            weight_gradient("weight_gradient"),
            weight_gradient("bias_gradient"),
        ],
        NormOp::SoftmaxForward => vec![input("x"), output("out")],
        NormOp::SoftmaxBackward => {
            // Shares of a row that sum to about 1.
            let shares = Fill::Uniform {
                low: 0.0,
                high: 2.0 / columns as f32,
            };
            vec![
                input("out").filled(shares),
                input("out_gradient"),
                output("x_gradient"),
            ]
        }
        NormOp::CrossEntropyForward => {
            vec![
                input("logits"),
                target(),
                row_output("loss"),
                row_output("lse"),
            ]
        }
        NormOp::CrossEntropyBackward => {
            // exp of uniform values in [-1, 1] has the mean sinh(1).
            let lse = (columns as f32 * 1f32.sinh()).ln();
            vec![
                input("logits"),
                target(),
                per_row("lse", around(lse, 0.1)),
                per_row("loss_gradient", around(0.0, 1.0)),
                output("logits_gradient"),
            ]
        }
        NormOp::CrossEntropyForwardBackward => {
            vec![in_out("logits"), target(), row_output("loss")]
        }
    }
}

fn around(middle: f32, distance: f32) -> Fill {
    Fill::Uniform {
        low: middle - distance,
        high: middle + distance,
    }
}

/// Operations per element that every implementation does in fp32; exp counts as one.
fn flops_per_element(op: NormOp) -> f64 {
    match op {
        NormOp::RmsNormForward => 4.0,
        NormOp::RmsNormBackward => 10.0,
        NormOp::FusedAddRmsNorm => 5.0,
        NormOp::LayerNormForward => 7.0,
        NormOp::LayerNormBackward => 13.0,
        NormOp::SoftmaxForward | NormOp::SoftmaxBackward => 4.0,
        NormOp::CrossEntropyForward => 3.0,
        NormOp::CrossEntropyBackward => 4.0,
        NormOp::CrossEntropyForwardBackward => 6.0,
    }
}

impl Problem for NormProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    fn cost(&self) -> Cost {
        let flops = flops_per_element(self.op) * self.shape.rows as f64 * self.shape.columns as f64;
        Cost::of_whole_tensors(self.tensors(), flops, Math::Fp32)
    }

    fn units(&self) -> usize {
        answers::units(self.op, self.shape)
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let exact = Arithmetic::<f64> {
            store: exact,
            sum: |terms| terms.iter().sum(),
        };
        answers::unit(self.op, self.shape, inputs, unit, exact)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let rounded = Arithmetic::<f32> {
            store: rounded,
            sum: reference::farthest_sum,
        };
        answers::unit(self.op, self.shape, inputs, unit, rounded)
    }

    /// Gradients of parameters are sums over rows of terms of either sign, each about as large as a
    /// uniform value. A loss is the difference of an lse and a logit, which is 0 with one column; so is
    /// the gradient then: a share of 1, minus 1.
    fn magnitude(&self, tensor: usize) -> f64 {
        let one_column = self.shape.columns == 1;
        match (self.op, self.tensors()[tensor].name) {
            (_, "weight_gradient" | "bias_gradient") => (self.shape.rows as f64 / 3.0).sqrt(),
            (NormOp::CrossEntropyForward | NormOp::CrossEntropyForwardBackward, "loss") => 1.0,
            (NormOp::CrossEntropyForwardBackward, "logits") if one_column => 1.0,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norms::suites::NormSuite;
    use crate::testing::{assert_honest_is_near, assert_units_cover_outputs_once};

    fn problem(op: NormOp, rows: usize, columns: usize, activation: DType) -> NormProblem {
        let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
        let types = NormTypes {
            activation,
            weight: DType::F32,
        };
        NormProblem::new(op, shape, types, workload)
    }

    #[test]
    fn cost_counts_every_tensor_once() {
        let cost = problem(NormOp::RmsNormForward, 4, 8, DType::Bf16).cost();
        assert_eq!((cost.read_bytes, cost.written_bytes), (64.0 + 32.0, 64.0));
        let cost = problem(NormOp::FusedAddRmsNorm, 4, 8, DType::Bf16).cost();
        assert_eq!((cost.read_bytes, cost.written_bytes), (128.0 + 32.0, 128.0));
        let cost = problem(NormOp::CrossEntropyForward, 4, 8, DType::F16).cost();
        assert_eq!((cost.read_bytes, cost.written_bytes), (64.0 + 32.0, 32.0));
    }

    #[test]
    fn units_cover_every_output_element_once() {
        for op in NormOp::all() {
            assert_units_cover_outputs_once(&problem(op, 3, 21, DType::Bf16));
        }
    }

    #[test]
    fn honest_values_are_near_the_oracle_and_representable() {
        for op in NormOp::all() {
            for dtype in [DType::Bf16, DType::F16, DType::F32] {
                let problem = problem(op, 5, 130, dtype);
                assert_honest_is_near(&problem, &[0, 4, problem.units() - 1], 16.0);
            }
        }
    }

    #[test]
    fn the_workload_says_what_the_shape_does_not() {
        let problem = problem(NormOp::LayerNormForward, 1, 2, DType::F16);
        assert_eq!(problem.workload().axes["weight_dtype"], "f32");
        assert_eq!(problem.workload().axes["epsilon"], "0.00001");
    }
}
