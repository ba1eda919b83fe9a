//! CUDA contenders: our kernels, Liger, FlashInfer, and the plain kernels that serve as the gate's
//! full reference.

use activations::{Function, Gate};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use numeric::DType;
use reference::activation::Unit;
use reference::rope::Pairs;
use workloads::{Activation, Pass, Scaling, TrainingOp, TrainingProblem, TrainingShape};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Tuned,
    Plain,
}

struct CudaTrainingOps {
    identity: Identity,
    variant: Variant,
}

pub fn contenders() -> Vec<Box<dyn Contender<TrainingProblem>>> {
    let contender = |name: &str, kind, variant| -> Box<dyn Contender<_>> {
        let identity = Identity::in_tree(name, kind, "the op's one kernel");
        Box::new(CudaTrainingOps { identity, variant })
    };
    vec![
        contender("ours", Kind::Own, Variant::Tuned),
        super::liger::contender(),
        super::flashinfer::contender(),
        contender("plain_fp32", Kind::Reference, Variant::Plain),
    ]
}

impl Contender<TrainingProblem> for CudaTrainingOps {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &TrainingProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if !matches!(problem.dtype, DType::F32 | DType::F16 | DType::Bf16) {
            return Support::No(format!("no {}; f32, f16 and bf16 only", problem.dtype));
        }
        let multiple = |what: &str, value: usize, of: usize| {
            if value.is_multiple_of(of) {
                Support::Yes
            } else {
                Support::No(format!(
                    "{what} is {value}; a multiple of {of} is supported"
                ))
            }
        };
        match (problem.op, problem.shape) {
            (TrainingOp::Quantize(_) | TrainingOp::Dequantize(_), TrainingShape::Rows(shape)) => {
                multiple("columns", shape.columns, quantize::COLUMN_MULTIPLE)
            }
            (_, TrainingShape::Rope(shape)) => multiple("dim", shape.dim, rope::DIM_MULTIPLE),
            _ => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &TrainingProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let op = op(problem, buffers)?;
        let variant = self.variant;
        Ok(Box::new(BoundOp { op, variant }))
    }
}

/// An operation with the addresses of its tensors.
enum Op {
    Activation(activations::Activation),
    Packed(activations::Packed),
    Rope(rope::Rope),
    Quantize(quantize::Matrix, [usize; 3]),
    Dequantize(quantize::Matrix, [usize; 3]),
}

/// One type of that name in each bridge.
macro_rules! dtype {
    ($module:ident, $dtype:expr) => {
        match $dtype {
            DType::F32 => $module::Dtype::F32,
            DType::F16 => $module::Dtype::F16,
            DType::Bf16 => $module::Dtype::Bf16,
            other => return Err(ContenderError::new(format!("no {other}"))),
        }
    };
}

/// Numbers are places in the problem's list of tensors.
fn op(problem: &TrainingProblem, buffers: &[Buffer]) -> Result<Op, ContenderError> {
    let at = |tensor: usize| buffers[tensor].address;
    match (problem.op, problem.shape) {
        (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) => {
            let backward = pass == Pass::Backward;
            // first, second, out_gradient, first_out, second_out
            let [first, second, out_gradient, first_out, second_out] =
                match (activation.is_gated(), pass) {
                    (false, Pass::Forward) => [at(0), 0, 0, at(1), 0],
                    (false, Pass::Backward) => [at(0), 0, at(1), at(2), 0],
                    (true, Pass::Forward) => [at(0), at(1), 0, at(2), 0],
                    (true, Pass::Backward) => [at(0), at(1), at(2), at(0), at(1)],
                };
            let function = match activation {
                Activation::Gelu => Function::Gelu,
                Activation::GeluTanh => Function::GeluTanh,
                Activation::SwiGlu => Function::SwiGlu,
                Activation::GeGlu => Function::GeGlu,
            };
            Ok(Op::Activation(activations::Activation {
                function,
                backward,
                dtype: dtype!(activations, problem.dtype),
                elements: shape.rows * shape.columns,
                first,
                second,
                out_gradient,
                first_out,
                second_out,
            }))
        }
        (TrainingOp::Packed(unit), TrainingShape::Rows(shape)) => {
            let gate = match unit {
                Unit::Silu => Gate::Silu,
                Unit::GeluTanh => Gate::GeluTanh,
                Unit::Gelu => Gate::Gelu,
            };
            Ok(Op::Packed(activations::Packed {
                gate,
                dtype: dtype!(activations, problem.dtype),
                rows: shape.rows,
                columns: shape.columns,
                input: at(0),
                out: at(1),
            }))
        }
        (TrainingOp::Rope(pairs, pass), TrainingShape::Rope(shape)) => Ok(Op::Rope(rope::Rope {
            backward: pass == Pass::Backward,
            interleaved: pairs == Pairs::Interleaved,
            dtype: dtype!(rope, problem.dtype),
            tokens: shape.tokens(),
            sequence: shape.sequence,
            query_heads: shape.query_heads,
            key_heads: shape.key_heads,
            dim: shape.dim,
            queries: at(0),
            keys: at(1),
            cos: at(2),
            sin: at(3),
        })),
        (
            op @ (TrainingOp::Quantize(scaling) | TrainingOp::Dequantize(scaling)),
            TrainingShape::Rows(shape),
        ) => {
            let matrix = quantize::Matrix {
                rows: shape.rows,
                columns: shape.columns,
                scaling: match scaling {
                    Scaling::Row => quantize::Scaling::Row,
                    Scaling::Group => quantize::Scaling::Group,
                    Scaling::GroupUe8m0 => quantize::Scaling::GroupUe8m0,
                    Scaling::Block => quantize::Scaling::Block,
                },
                dtype: dtype!(quantize, problem.dtype),
            };
            let tensors = [at(0), at(1), at(2)];
            Ok(match op {
                TrainingOp::Quantize(_) => Op::Quantize(matrix, tensors),
                _ => Op::Dequantize(matrix, tensors),
            })
        }
        (op, shape) => Err(ContenderError::new(format!("{shape} is no shape of {op}"))),
    }
}

struct BoundOp {
    op: Op,
    variant: Variant,
}

impl Bound for BoundOp {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        macro_rules! variant {
            ($module:ident) => {
                match self.variant {
                    Variant::Tuned => $module::Variant::Tuned,
                    Variant::Plain => $module::Variant::Plain,
                }
            };
        }
        match &self.op {
            Op::Activation(op) => activations::launch(op, variant!(activations), stream),
            Op::Packed(op) => activations::packed(op, variant!(activations), stream),
            Op::Rope(op) => rope::launch(op, variant!(rope), stream),
            Op::Quantize(matrix, [x, quantized, scales]) => {
                let variant = variant!(quantize);
                quantize::quantize(matrix, *x, *quantized, *scales, variant, stream)
            }
            Op::Dequantize(matrix, [quantized, scales, out]) => {
                let variant = variant!(quantize);
                quantize::dequantize(matrix, *quantized, *scales, *out, variant, stream)
            }
        }
        .map_err(ContenderError::new)
    }
}
