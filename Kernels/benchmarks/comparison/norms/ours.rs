//! CUDA contenders: our kernels, and the plain ones that serve as the gate's full reference.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceKind, Facts, Identity, Kind,
    Tensors,
};
use norms::{
    CrossEntropyBackward, CrossEntropyForward, CrossEntropyFused, Dtype, FusedAddRmsNorm,
    LayerNormForward, Matrix, NormBackward, RmsNormForward, SoftmaxBackward, SoftmaxForward,
    UniquePtr, Variant,
};
use numeric::DType;
use workloads::{NormOp, NormProblem};

pub fn contenders() -> Contenders<NormProblem> {
    let contender = |name: &str, kind, variant| {
        let region = "all kernels of the op; weight gradients with their final sum";
        contender(
            Identity::in_tree(name, kind, region),
            DeviceKind::Cuda,
            |problem, _device| unsupported(problem),
            move |problem, tensors, _device| bind(problem, tensors, variant),
        )
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

fn unsupported(problem: &NormProblem) -> Option<String> {
    const MAX_COLUMNS: usize = 262_144;
    let (types, columns) = (problem.types, problem.shape.columns);
    if matrix(problem).is_none() {
        Some(format!(
            "no {} activations with {} weights; f32, f16 or bf16 with f32 or the same",
            types.activation, types.weight
        ))
    } else {
        (columns > MAX_COLUMNS).then(|| format!("{columns} columns; at most {MAX_COLUMNS}"))
    }
}

fn bind(problem: &NormProblem, tensors: &Tensors, variant: Variant) -> Binding {
    let matrix = matrix(problem).ok_or_else(|| ContenderError::new("unsupported types"))?;
    let op = op(problem, tensors)?;
    // Null where the operation needs none.
    let workspace = match &op {
        Op::NormBackward(tensors) => {
            norms::allocate_workspace(tensors, &matrix, variant).map_err(ContenderError::new)?
        }
        _ => UniquePtr::null(),
    };
    Ok(bound(Facts::new(), move |stream| match &op {
        Op::RmsNormForward(op) => norms::rmsnorm_forward(op, &matrix, variant, stream),
        Op::FusedAddRmsNorm(op) => norms::fused_add_rmsnorm(op, &matrix, variant, stream),
        Op::LayerNormForward(op) => norms::layernorm_forward(op, &matrix, variant, stream),
        Op::NormBackward(op) => norms::norm_backward(op, &matrix, variant, &workspace, stream),
        Op::SoftmaxForward(op) => norms::softmax_forward(op, &matrix, variant, stream),
        Op::SoftmaxBackward(op) => norms::softmax_backward(op, &matrix, variant, stream),
        Op::CrossEntropyForward(op) => norms::cross_entropy_forward(op, &matrix, variant, stream),
        Op::CrossEntropyBackward(op) => norms::cross_entropy_backward(op, &matrix, variant, stream),
        Op::CrossEntropyFused(op) => norms::cross_entropy_fused(op, &matrix, variant, stream),
    }))
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

fn op(problem: &NormProblem, tensors: &Tensors) -> Result<Op, ContenderError> {
    let at = |name| tensors.address(name);
    let epsilon = problem.epsilon;
    Ok(match problem.op {
        NormOp::RmsNormForward => Op::RmsNormForward(RmsNormForward {
            x: at("x")?,
            weight: at("weight")?,
            out: at("out")?,
            epsilon,
        }),
        NormOp::FusedAddRmsNorm => Op::FusedAddRmsNorm(FusedAddRmsNorm {
            x: at("x")?,
            residual: at("residual")?,
            weight: at("weight")?,
            epsilon,
        }),
        NormOp::LayerNormForward => Op::LayerNormForward(LayerNormForward {
            x: at("x")?,
            weight: at("weight")?,
            bias: at("bias")?,
            out: at("out")?,
            epsilon,
        }),
        NormOp::RmsNormBackward | NormOp::LayerNormBackward => Op::NormBackward(NormBackward {
            x: at("x")?,
            weight: at("weight")?,
            out_gradient: at("out_gradient")?,
            mean: tensors.address_or_null("mean"),
            rstd: at("rstd")?,
            x_gradient: at("x_gradient")?,
            weight_gradient: at("weight_gradient")?,
            bias_gradient: tensors.address_or_null("bias_gradient"),
        }),
        NormOp::SoftmaxForward => Op::SoftmaxForward(SoftmaxForward {
            x: at("x")?,
            out: at("out")?,
        }),
        NormOp::SoftmaxBackward => Op::SoftmaxBackward(SoftmaxBackward {
            out: at("out")?,
            out_gradient: at("out_gradient")?,
            x_gradient: at("x_gradient")?,
        }),
        NormOp::CrossEntropyForward => Op::CrossEntropyForward(CrossEntropyForward {
            logits: at("logits")?,
            targets: at("target")?,
            loss: at("loss")?,
            lse: at("lse")?,
        }),
        NormOp::CrossEntropyBackward => Op::CrossEntropyBackward(CrossEntropyBackward {
            logits: at("logits")?,
            targets: at("target")?,
            lse: at("lse")?,
            loss_gradient: at("loss_gradient")?,
            logits_gradient: at("logits_gradient")?,
        }),
        NormOp::CrossEntropyForwardBackward => Op::CrossEntropyFused(CrossEntropyFused {
            logits: at("logits")?,
            targets: at("target")?,
            loss: at("loss")?,
        }),
    })
}
