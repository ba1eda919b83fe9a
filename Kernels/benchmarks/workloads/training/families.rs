//! Kinds of inputs for the training primitives.

use contender::{Family, Statement};
use tensor::Shaped;

use super::op::TrainingOp;
use super::shape::TrainingShape;
use crate::kinds::{outlier_columns, uneven_rows, uniform, LARGE, OUTLIERS, UNEVEN_ROWS};

/// Where an activation is a straight line on both sides; its exponentials stay finite.
const STEEP: f32 = 40.0;
/// Rows of different scales, constant ones and zeros.
const UNEVEN: [(f32, f32); 5] = [
    (-1.0, 1.0),
    (-30.0, 30.0),
    (-1e-3, 1e-3),
    (0.75, 0.75),
    (0.0, 0.0),
];

pub fn of(op: TrainingOp, shape: TrainingShape, statement: &Statement) -> Vec<Family> {
    let input = match op {
        TrainingOp::Activation(activation, _) if activation.is_gated() => "gate",
        TrainingOp::Activation(..) | TrainingOp::Quantize(_) => "x",
        TrainingOp::Packed(_) => "gate_and_up",
        TrainingOp::Rope(..) => "queries",
        TrainingOp::Dequantize(_) => "quantized",
    };
    let columns = match shape {
        TrainingShape::Rows(shape) => shape.columns,
        TrainingShape::Rope(shape) => shape.dim,
    };
    let elements = statement.tensor(input).elements();
    let outliers = Shaped::flat(-1.0, 1.0).times(outlier_columns(columns, 32.0));
    let uneven = uneven_rows(columns, elements, &UNEVEN);
    vec![
        statement.family(OUTLIERS, vec![(input, outliers.into())]),
        statement.family(LARGE, vec![(input, uniform(-STEEP, STEEP))]),
        statement.family(UNEVEN_ROWS, vec![(input, uneven.into())]),
    ]
}
