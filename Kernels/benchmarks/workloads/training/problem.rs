//! Training primitives as problems: tensors, cost, and checkable units.
//!
//! RoPE and the backward passes of gated activations work in place, as in training, where memory is scarce:
//! gradients overwrite gate and up, rotated heads overwrite the heads.

use std::sync::Arc;

use contender::{Cost, Family, Math, Problem, Slice, Statement, Workload};
use numeric::DType;
use reference::quantize::{tiled_scales, ScaleFormat, SCALE_TILE};
use reference::rope;
use tensor::{Fill, Inputs, TensorSpec};

use super::op::{Activation, Pass, Scaling, TrainingOp, NORM_LARGEST, QUANTIZED_TO};
use super::shape::{RopeShape, TrainingShape};
use super::{answers, families};
use crate::arithmetic::{exact, rounded};
use crate::kinds::constant;
use crate::rows::RowShape;

/// One training primitive on one shape.
#[derive(Clone, Debug)]
pub struct TrainingProblem {
    pub op: TrainingOp,
    pub shape: TrainingShape,
    statement: Statement,
}

/// Where the activation bends; beyond this it is a straight line.
const ACTIVATION_RANGE: Fill = Fill::Uniform {
    low: -4.0,
    high: 4.0,
};
/// Dequantised inputs: every e4m3 code, and scales that bring them near 1.
const CODES: Fill = Fill::Uniform {
    low: -448.0,
    high: 448.0,
};
const SCALES: Fill = Fill::Uniform {
    low: 0.001,
    high: 0.01,
};
/// The scales of NVFP4 have no sign; with this scale of the tensor they are near 1 too.
const NVFP4_SCALES: Fill = Fill::Uniform {
    low: 0.5,
    high: 448.0,
};
const DEQUANTIZED_BY: f32 = 1.0 / 512.0;
/// As in Llama 3.
const ROPE_BASE: f64 = 500_000.0;

impl TrainingProblem {
    /// `dtype` is the type of activations, their gradients, heads, and what is quantised.
    ///
    /// # Panics
    /// If the shape is not of the op's kind; suites and benches pair them.
    pub fn new(op: TrainingOp, shape: TrainingShape, dtype: DType, workload: Workload) -> Self {
        let matrix = |rows: RowShape| [rows.rows, rows.columns];
        let tensors = match (op, shape) {
            (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) => {
                activation_tensors(activation, pass, shape, dtype)
            }
            (TrainingOp::Packed(_), TrainingShape::Rows(shape)) => vec![
                TensorSpec::input("gate_and_up", dtype, &[shape.rows, 2 * shape.columns])
                    .filled(ACTIVATION_RANGE),
                TensorSpec::output("out", dtype, &matrix(shape)),
            ],
            (TrainingOp::Quantize(scaling), TrainingShape::Rows(shape)) => {
                let mut tensors = vec![
                    TensorSpec::input("x", dtype, &matrix(shape)),
                    TensorSpec::output("quantized", element(scaling), &codes(scaling, shape)),
                    TensorSpec::output("scales", scale_dtype(scaling), &scales(scaling, shape)),
                ];
                tensors.extend(tensor_scale(scaling, QUANTIZED_TO));
                tensors
            }
            (TrainingOp::Dequantize(scaling), TrainingShape::Rows(shape)) => {
                let (all_codes, all_scales) = match scaling {
                    Scaling::Nvfp4 => (Fill::Index { below: 256 }, NVFP4_SCALES),
                    Scaling::Mxfp4 => (Fill::Index { below: 256 }, SCALES),
                    _ => (CODES, SCALES),
                };
                let mut tensors = vec![
                    TensorSpec::input("quantized", element(scaling), &codes(scaling, shape))
                        .filled(all_codes),
                    TensorSpec::input("scales", scale_dtype(scaling), &scales(scaling, shape))
                        .filled(all_scales),
                    TensorSpec::output("out", dtype, &matrix(shape)),
                ];
                tensors.extend(tensor_scale(scaling, DEQUANTIZED_BY));
                tensors
            }
            (TrainingOp::NormQuantize(scaling), TrainingShape::Rows(shape)) => {
                let mut tensors = vec![
                    TensorSpec::input("x", dtype, &matrix(shape)),
                    TensorSpec::input("weight", dtype, &[shape.columns]),
                    TensorSpec::output("quantized", element(scaling), &codes(scaling, shape)),
                    TensorSpec::output("scales", scale_dtype(scaling), &scales(scaling, shape)),
                ];
                tensors.extend(tensor_scale(scaling, NORM_LARGEST * QUANTIZED_TO));
                tensors
            }
            (TrainingOp::Rope(..), TrainingShape::Rope(shape)) => rope_tensors(shape, dtype),
            (op, shape) => panic!("{shape} does not fit {op}"),
        };
        let mut statement = Statement {
            op: op.name(),
            dtype,
            workload,
            tensors,
        };
        if op.is_rope() {
            statement.axis("base", ROPE_BASE);
        }
        if let Some(epsilon) = op.epsilon() {
            statement.axis("epsilon", epsilon.to_string());
        }
        Self {
            op,
            shape,
            statement,
        }
    }
}

fn activation_tensors(
    activation: Activation,
    pass: Pass,
    RowShape { rows, columns }: RowShape,
    dtype: DType,
) -> Vec<TensorSpec> {
    let matrix = [rows, columns];
    let input = |name| TensorSpec::input(name, dtype, &matrix);
    let output = |name| TensorSpec::output(name, dtype, &matrix);
    let bent = |spec: TensorSpec| spec.filled(ACTIVATION_RANGE);
    match (activation.is_gated(), pass) {
        (false, Pass::Forward) => vec![bent(input("x")), output("out")],
        (false, Pass::Backward) => {
            vec![
                bent(input("x")),
                input("out_gradient"),
                output("x_gradient"),
            ]
        }
        (true, Pass::Forward) => vec![bent(input("gate")), input("up"), output("out")],
        (true, Pass::Backward) => vec![
            bent(TensorSpec::in_out("gate", dtype, &matrix)),
            TensorSpec::in_out("up", dtype, &matrix),
            input("out_gradient"),
        ],
    }
}

fn scale_dtype(scaling: Scaling) -> DType {
    match scaling.format() {
        Some(ScaleFormat::F32) => DType::F32,
        Some(ScaleFormat::Ue8m0) => DType::F8E8M0,
        None => DType::F8E4M3,
    }
}

/// The type of quantised elements.
fn element(scaling: Scaling) -> DType {
    match scaling {
        Scaling::Mxfp8 => DType::Mxfp8,
        Scaling::Nvfp4 => DType::Nvfp4,
        Scaling::Mxfp4 => DType::Mxfp4,
        _ => DType::F8E4M3,
    }
}

/// The shape of the quantised matrix: FP4 has two elements per byte.
fn codes(scaling: Scaling, shape: RowShape) -> [usize; 2] {
    let bytes = match scaling.is_paired() {
        true => shape.columns.div_ceil(2),
        false => shape.columns,
    };
    [shape.rows, bytes]
}

/// The shape of the scales: of tiles, one line is a tile.
fn scales(scaling: Scaling, shape: RowShape) -> [usize; 2] {
    let (rows, columns) = scaling.tile(shape.columns);
    let (down, across) = (shape.rows.div_ceil(rows), shape.columns.div_ceil(columns));
    if scaling.is_tiled() {
        let tile = SCALE_TILE.0 * SCALE_TILE.1;
        return [tiled_scales(down, across) / tile, tile];
    }
    [down, across]
}

/// The scale of the whole tensor, if the format has one.
fn tensor_scale(scaling: Scaling, value: f32) -> Option<TensorSpec> {
    let spec = TensorSpec::input("tensor_scale", DType::F32, &[1]);
    (scaling == Scaling::Nvfp4).then(|| spec.filled(constant(value)))
}

/// Heads in place; cos and sin as a cache with one row per position, one value per pair.
fn rope_tensors(shape: RopeShape, dtype: DType) -> Vec<TensorSpec> {
    let pairs = shape.dim / 2;
    let table = |name, value: fn(f64) -> f64| {
        let angles = (0..shape.sequence * pairs)
            .map(|index| rope::angle(index / pairs, index % pairs, shape.dim, ROPE_BASE));
        let bytes: Vec<u8> = angles
            .flat_map(|angle| (value(angle) as f32).to_le_bytes())
            .collect();
        TensorSpec::input(name, DType::F32, &[shape.sequence, pairs])
            .filled(Fill::Bytes(Arc::from(bytes)))
    };
    let heads = |name, heads| TensorSpec::in_out(name, dtype, &[shape.tokens(), heads, shape.dim]);
    vec![
        heads("queries", shape.query_heads),
        heads("keys", shape.key_heads),
        table("cos", f64::cos),
        table("sin", f64::sin),
    ]
}

impl Problem for TrainingProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    fn cost(&self) -> Cost {
        let elements = match self.shape {
            TrainingShape::Rows(shape) => shape.rows * shape.columns,
            TrainingShape::Rope(shape) => {
                shape.tokens() * (shape.query_heads + shape.key_heads) * shape.dim
            }
        };
        let flops = self.op.flops_per_element() * elements as f64;
        Cost::of_whole_tensors(self.tensors(), flops, Math::Fp32)
    }

    fn families(&self) -> Vec<Family> {
        families::of(self.op, self.shape, &self.statement)
    }

    fn units(&self) -> usize {
        answers::units(self.op, self.shape)
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f64>(self.op, self.shape, inputs, unit, exact)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::unit::<f32>(self.op, self.shape, inputs, unit, rounded)
    }

    fn is_exact(&self, _tensor: usize) -> bool {
        self.op.is_exact()
    }
}
