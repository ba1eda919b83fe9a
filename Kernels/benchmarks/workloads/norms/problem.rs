//! Row operations as problems: a statement, cost, and checkable units.

use contender::{Cost, Family, Math, Problem, Slice, Statement, Workload};
use tensor::Inputs;

use super::answers::{self, Arithmetic};
use super::families;
use super::op::{NormOp, NormTypes};
use crate::arithmetic::{exact, rounded};
use crate::rows::RowShape;

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
            tensors: op.tensors(shape, types),
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

impl Problem for NormProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    fn cost(&self) -> Cost {
        let flops =
            self.op.flops_per_element() * self.shape.rows as f64 * self.shape.columns as f64;
        Cost::of_whole_tensors(self.tensors(), flops, Math::Fp32)
    }

    fn families(&self) -> Vec<Family> {
        families::of(self.op, self.shape, &self.statement)
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

    fn magnitude(&self, tensor: usize) -> f64 {
        self.op.magnitude(self.tensors()[tensor].name, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numeric::DType;

    use crate::norms::suites::NormSuite;
    use crate::testing::{
        assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
    };

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
                let units: Vec<usize> = (0..problem.units()).collect();
                assert_honest_on_families(&problem, &units, 64.0);
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
