//! Our kernels.

use activations::{Function, Gate};
use contender::{ContenderError, Contenders, Problem as _, Tensors};
use our_contender::{dtype, Ours, Plan, UniquePtr, Variant};
use reference::rope::Pairs;
use workloads::{Pass, Scaling, TrainingOp, TrainingProblem, TrainingShape};

const FAMILY: Ours<TrainingProblem, Op, ContenderError> = Ours {
    timed: "the op's one kernel",
    obstacle: |_, _| None,
    op,
    check,
    plan,
};

pub fn contenders() -> Contenders<TrainingProblem> {
    vec![FAMILY.ours()]
}

pub fn reference() -> Contenders<TrainingProblem> {
    vec![FAMILY.plain()]
}

enum Op {
    Activation(activations::Activation),
    Packed(activations::Packed),
    Rope(rope::Rope),
    Quantization(quantize::Quantization),
    NormQuantization(quantize::NormQuantization),
}

fn check(op: &Op, variant: Variant) -> Result<(), ContenderError> {
    match op {
        Op::Activation(op) => activations::check(op, variant),
        Op::Packed(op) => activations::check_packed(op, variant),
        Op::Rope(op) => rope::check(op, variant),
        Op::Quantization(op) => quantize::check(op, variant),
        Op::NormQuantization(op) => quantize::check_norm(op, variant),
    }
    .map_err(ContenderError::new)
}

unsafe fn plan(op: &Op, variant: Variant) -> Result<UniquePtr<Plan>, ContenderError> {
    // SAFETY: the caller guarantees it for all addresses.
    unsafe {
        match op {
            Op::Activation(op) => activations::plan(op, variant),
            Op::Packed(op) => activations::plan_packed(op, variant),
            Op::Rope(op) => rope::plan(op, variant),
            Op::Quantization(op) => quantize::plan(op, variant),
            Op::NormQuantization(op) => quantize::plan_norm(op, variant),
        }
    }
    .map_err(ContenderError::new)
}

fn op(problem: &TrainingProblem, tensors: &Tensors) -> Result<Op, ContenderError> {
    let dtype = dtype(problem.dtype())?;
    let unknown = || ContenderError::new(format!("no kernel for {}", problem.op));
    match (problem.op, problem.shape) {
        (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) => {
            let [first, second, out_gradient, first_out, second_out] =
                match (activation.is_gated(), pass) {
                    (false, Pass::Forward) => ["x", "", "", "out", ""],
                    (false, Pass::Backward) => ["x", "", "out_gradient", "x_gradient", ""],
                    (true, Pass::Forward) => ["gate", "up", "", "out", ""],
                    // In place.
                    (true, Pass::Backward) => ["gate", "up", "out_gradient", "gate", "up"],
                }
                .map(|name| tensors.address_or_null(name));
            Ok(Op::Activation(activations::Activation {
                function: Function::named(activation.name()).ok_or_else(unknown)?,
                backward: pass == Pass::Backward,
                dtype,
                elements: shape.rows * shape.columns,
                first,
                second,
                out_gradient,
                first_out,
                second_out,
            }))
        }
        (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
            Ok(Op::Packed(activations::Packed {
                gate: Gate::named(unit.name()).ok_or_else(unknown)?,
                dtype,
                rows: shape.rows,
                columns: shape.columns,
                input: tensors.address("gate_and_up")?,
                out: tensors.address("out")?,
            }))
        }
        (TrainingOp::Rope(pairs, pass), TrainingShape::Rope(shape)) => Ok(Op::Rope(rope::Rope {
            backward: pass == Pass::Backward,
            interleaved: pairs == Pairs::Interleaved,
            dtype,
            tokens: shape.tokens(),
            sequence: shape.sequence,
            query_heads: shape.query_heads,
            key_heads: shape.key_heads,
            dim: shape.dim,
            queries: tensors.address("queries")?,
            keys: tensors.address("keys")?,
            cos: tensors.address("cos")?,
            sin: tensors.address("sin")?,
        })),
        (
            op @ (TrainingOp::Quantize(scaling) | TrainingOp::Dequantize(scaling)),
            TrainingShape::Rows(shape),
        ) => {
            let inverse = matches!(op, TrainingOp::Dequantize(_));
            Ok(Op::Quantization(quantize::Quantization {
                inverse,
                scaling: scaling_of(scaling),
                dtype,
                rows: shape.rows,
                columns: shape.columns,
                x: tensors.address(if inverse { "out" } else { "x" })?,
                quantized: tensors.address("quantized")?,
                scales: tensors.address("scales")?,
                tensor_scale: tensors.address_or_null("tensor_scale"),
            }))
        }
        (op @ TrainingOp::NormQuantize(scaling), TrainingShape::Rows(shape)) => {
            Ok(Op::NormQuantization(quantize::NormQuantization {
                scaling: scaling_of(scaling),
                dtype,
                rows: shape.rows,
                columns: shape.columns,
                epsilon: op.epsilon().ok_or_else(unknown)?,
                x: tensors.address("x")?,
                weight: tensors.address("weight")?,
                quantized: tensors.address("quantized")?,
                scales: tensors.address("scales")?,
                tensor_scale: tensors.address_or_null("tensor_scale"),
            }))
        }
        (op, shape) => Err(ContenderError::new(format!("{shape} does not fit {op}"))),
    }
}

fn scaling_of(scaling: Scaling) -> quantize::Scaling {
    match scaling {
        Scaling::Row => quantize::Scaling::Row,
        Scaling::Group => quantize::Scaling::Group,
        Scaling::GroupUe8m0 => quantize::Scaling::GroupUe8m0,
        Scaling::Block => quantize::Scaling::Block,
        Scaling::Mxfp8 => quantize::Scaling::Mxfp8,
        Scaling::Nvfp4 => quantize::Scaling::Nvfp4,
        Scaling::Mxfp4 => quantize::Scaling::Mxfp4,
    }
}
