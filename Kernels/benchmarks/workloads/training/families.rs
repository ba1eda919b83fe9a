//! Kinds of inputs for the training primitives.

use contender::{Family, Statement};
use tensor::{Fill, Shaped};

use super::op::{Scaling, TrainingOp, NORM_LARGEST, QUANTIZED_TO};
use super::shape::TrainingShape;
use crate::kinds::{constant, outlier_columns, uneven_rows, uniform, LARGE, OUTLIERS, UNEVEN_ROWS};

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

/// Codes of pairs do not follow a range: other kinds of dequantised inputs are other scales.
fn of_pairs(statement: &Statement) -> Vec<Family> {
    vec![
        statement.family(LARGE, vec![("scales", uniform(300.0, 448.0))]),
        // The first of each pair varies, the second is zero.
        statement.family(UNEVEN_ROWS, vec![("quantized", Fill::Index { below: 16 })]),
    ]
}

pub fn of(op: TrainingOp, shape: TrainingShape, statement: &Statement) -> Vec<Family> {
    if matches!(op, TrainingOp::Dequantize(scaling) if scaling.is_paired()) {
        return of_pairs(statement);
    }
    let input = match op {
        TrainingOp::Activation(activation, _) if activation.is_gated() => "gate",
        TrainingOp::Activation(..) | TrainingOp::Quantize(_) | TrainingOp::NormQuantize(_) => "x",
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
    // The scale of the tensor is that of the largest magnitude.
    let family = |name, fill: Fill, largest: f32| {
        let mut fills = vec![(input, fill)];
        let largest = match op {
            TrainingOp::Quantize(Scaling::Nvfp4) => Some(largest),
            // A norm makes all rows alike, but for elements that stand out of them.
            TrainingOp::NormQuantize(Scaling::Nvfp4) if name == OUTLIERS => Some(largest),
            TrainingOp::NormQuantize(Scaling::Nvfp4) => Some(NORM_LARGEST),
            _ => None,
        };
        fills.extend(largest.map(|most| ("tensor_scale", constant(most * QUANTIZED_TO))));
        statement.family(name, fills)
    };
    vec![
        family(OUTLIERS, outliers.into(), 32.0),
        family(LARGE, uniform(-STEEP, STEEP), STEEP),
        family(UNEVEN_ROWS, uneven.into(), 30.0),
    ]
}
