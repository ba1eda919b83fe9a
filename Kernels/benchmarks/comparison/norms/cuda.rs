//! CUDA contenders: our kernels, and the plain ones that serve as the gate's full reference.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use norms::{
    CrossEntropyBackward, CrossEntropyForward, CrossEntropyFused, Dtype, FusedAddRmsNorm,
    LayerNormForward, Matrix, NormBackward, RmsNormForward, SoftmaxBackward, SoftmaxForward,
    UniquePtr, Variant, Workspace,
};
use numeric::DType;
use workloads::{NormOp, NormProblem};

struct CudaNorms {
    identity: Identity,
    variant: Variant,
}

pub fn contenders() -> Vec<Box<dyn Contender<NormProblem>>> {
    let contender = |name: &str, kind, variant| -> Box<dyn Contender<_>> {
        let identity = Identity::in_tree(
            name,
            kind,
            "all kernels of the op; weight gradients with their final sum",
        );
        Box::new(CudaNorms { identity, variant })
    };
    vec![
        contender("ours", Kind::Own, Variant::Tuned),
        contender("plain_fp32", Kind::Reference, Variant::Plain),
    ]
}

/// The kernels' name of a type, where they have it.
fn dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::F32 => Some(Dtype::F32),
        DType::F16 => Some(Dtype::F16),
        DType::Bf16 => Some(Dtype::Bf16),
        _ => None,
    }
}

fn matrix(problem: &NormProblem) -> Option<Matrix> {
    let types = problem.types;
    let same_or_wide = types.weight == DType::F32 || types.weight == types.activation;
    Some(Matrix {
        rows: problem.shape.rows,
        columns: problem.shape.columns,
        dtype: dtype(types.activation)?,
        weight_dtype: dtype(types.weight).filter(|_| same_or_wide)?,
    })
}

impl Contender<NormProblem> for CudaNorms {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        const MAX_COLUMNS: usize = 262_144;
        if device.kind != DeviceKind::Cuda {
            Support::No("runs on CUDA only".to_owned())
        } else if matrix(problem).is_none() {
            let types = problem.types;
            Support::No(format!(
                "no {} activations with {} weights; f32, f16 or bf16 with f32 or the same",
                types.activation, types.weight
            ))
        } else if problem.shape.columns > MAX_COLUMNS {
            let columns = problem.shape.columns;
            Support::No(format!("{columns} columns; at most {MAX_COLUMNS}"))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let matrix = matrix(problem).ok_or_else(|| ContenderError::new("unsupported types"))?;
        let op = op(problem, buffers);
        let workspace = match &op {
            Op::NormBackward(tensors) => norms::allocate_workspace(tensors, &matrix, self.variant)
                .map_err(ContenderError::new)?,
            _ => UniquePtr::null(),
        };
        Ok(Box::new(BoundNorms {
            op,
            matrix,
            variant: self.variant,
            workspace,
        }))
    }
}

/// An operation with the addresses of its tensors.
enum Op {
    RmsNormForward(RmsNormForward),
    FusedAddRmsNorm(FusedAddRmsNorm),
    LayerNormForward(LayerNormForward),
    NormBackward(NormBackward),
    SoftmaxForward(SoftmaxForward),
    SoftmaxBackward(SoftmaxBackward),
    CrossEntropyForward(CrossEntropyForward),
    CrossEntropyBackward(CrossEntropyBackward),
    CrossEntropyFused(CrossEntropyFused),
}

/// Numbers are places in the problem's list of tensors.
fn op(problem: &NormProblem, buffers: &[Buffer]) -> Op {
    let at = |tensor: usize| buffers[tensor].address;
    let epsilon = problem.epsilon;
    match problem.op {
        NormOp::RmsNormForward => Op::RmsNormForward(RmsNormForward {
            x: at(0),
            weight: at(1),
            out: at(2),
            epsilon,
        }),
        NormOp::FusedAddRmsNorm => Op::FusedAddRmsNorm(FusedAddRmsNorm {
            x: at(0),
            residual: at(1),
            weight: at(2),
            epsilon,
        }),
        NormOp::LayerNormForward => Op::LayerNormForward(LayerNormForward {
            x: at(0),
            weight: at(1),
            bias: at(2),
            out: at(3),
            epsilon,
        }),
        NormOp::RmsNormBackward => Op::NormBackward(NormBackward {
            x: at(0),
            weight: at(1),
            out_gradient: at(2),
            mean: 0,
            rstd: at(3),
            x_gradient: at(4),
            weight_gradient: at(5),
            bias_gradient: 0,
        }),
        NormOp::LayerNormBackward => Op::NormBackward(NormBackward {
            x: at(0),
            weight: at(1),
            out_gradient: at(2),
            mean: at(3),
            rstd: at(4),
            x_gradient: at(5),
            weight_gradient: at(6),
            bias_gradient: at(7),
        }),
        NormOp::SoftmaxForward => Op::SoftmaxForward(SoftmaxForward {
            x: at(0),
            out: at(1),
        }),
        NormOp::SoftmaxBackward => Op::SoftmaxBackward(SoftmaxBackward {
            out: at(0),
            out_gradient: at(1),
            x_gradient: at(2),
        }),
        NormOp::CrossEntropyForward => Op::CrossEntropyForward(CrossEntropyForward {
            logits: at(0),
            targets: at(1),
            loss: at(2),
            lse: at(3),
        }),
        NormOp::CrossEntropyBackward => Op::CrossEntropyBackward(CrossEntropyBackward {
            logits: at(0),
            targets: at(1),
            lse: at(2),
            loss_gradient: at(3),
            logits_gradient: at(4),
        }),
        NormOp::CrossEntropyForwardBackward => Op::CrossEntropyFused(CrossEntropyFused {
            logits: at(0),
            targets: at(1),
            loss: at(2),
        }),
    }
}

struct BoundNorms {
    op: Op,
    matrix: Matrix,
    variant: Variant,
    /// Null where the operation needs none.
    workspace: UniquePtr<Workspace>,
}

impl Bound for BoundNorms {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        let (matrix, variant) = (&self.matrix, self.variant);
        match &self.op {
            Op::RmsNormForward(op) => norms::rmsnorm_forward(op, matrix, variant, stream),
            Op::FusedAddRmsNorm(op) => norms::fused_add_rmsnorm(op, matrix, variant, stream),
            Op::LayerNormForward(op) => norms::layernorm_forward(op, matrix, variant, stream),
            Op::NormBackward(op) => {
                norms::norm_backward(op, matrix, variant, &self.workspace, stream)
            }
            Op::SoftmaxForward(op) => norms::softmax_forward(op, matrix, variant, stream),
            Op::SoftmaxBackward(op) => norms::softmax_backward(op, matrix, variant, stream),
            Op::CrossEntropyForward(op) => {
                norms::cross_entropy_forward(op, matrix, variant, stream)
            }
            Op::CrossEntropyBackward(op) => {
                norms::cross_entropy_backward(op, matrix, variant, stream)
            }
            Op::CrossEntropyFused(op) => norms::cross_entropy_fused(op, matrix, variant, stream),
        }
        .map_err(ContenderError::new)
    }
}
