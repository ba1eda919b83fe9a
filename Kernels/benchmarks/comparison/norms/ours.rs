//! Our kernels.

use contender::{ContenderError, Contenders, Tensors};
use norms::{Norm, Op};
use our_contender::{dtype, Ours};
use workloads::{NormOp, NormProblem};

pub fn contenders() -> Contenders<NormProblem> {
    let family = Ours {
        timed: "all kernels of the op; weight gradients with their final sum",
        obstacle: |_, _| None,
        op,
        check: norms::check,
        plan: norms::plan,
    };
    vec![family.ours(), family.plain()]
}

fn op(problem: &NormProblem, tensors: &Tensors) -> Result<Norm, ContenderError> {
    // Each op has some of these.
    let address = |name| tensors.address_or_null(name);
    Ok(Norm {
        op: match problem.op {
            NormOp::RmsNormForward => Op::RmsNormForward,
            NormOp::FusedAddRmsNorm => Op::FusedAddRmsNorm,
            NormOp::LayerNormForward => Op::LayerNormForward,
            NormOp::RmsNormBackward => Op::RmsNormBackward,
            NormOp::LayerNormBackward => Op::LayerNormBackward,
            NormOp::SoftmaxForward => Op::SoftmaxForward,
            NormOp::SoftmaxBackward => Op::SoftmaxBackward,
            NormOp::CrossEntropyForward => Op::CrossEntropyForward,
            NormOp::CrossEntropyBackward => Op::CrossEntropyBackward,
            NormOp::CrossEntropyForwardBackward => Op::CrossEntropyFused,
        },
        rows: problem.shape.rows,
        columns: problem.shape.columns,
        dtype: dtype(problem.types.activation)?,
        weight_dtype: dtype(problem.types.weight)?,
        epsilon: problem.epsilon,
        x: address("x"),
        residual: address("residual"),
        weight: address("weight"),
        bias: address("bias"),
        out: address("out"),
        mean: address("mean"),
        rstd: address("rstd"),
        out_gradient: address("out_gradient"),
        x_gradient: address("x_gradient"),
        weight_gradient: address("weight_gradient"),
        bias_gradient: address("bias_gradient"),
        logits: address("logits"),
        targets: address("target"),
        loss: address("loss"),
        lse: address("lse"),
        loss_gradient: address("loss_gradient"),
        logits_gradient: address("logits_gradient"),
    })
}
