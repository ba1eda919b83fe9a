//! cuDNN's fused attention.

use contender::{Contenders, Problem};
use cudnn::{Attention, DataType};
use cudnn_contender::{contender, Operation};
use numeric::DType;
use workloads::PrefillProblem;

pub fn contenders() -> Contenders<PrefillProblem> {
    vec![contender(Operation {
        timed_region: "all kernels of the plan",
        // The cumulative lengths are part of the plan.
        arguments: |problem: &PrefillProblem| {
            let all = ["q", "k", "v", "out", "lse"];
            all[..if problem.op.has_lse() { 5 } else { 4 }].to_vec()
        },
        of,
        graph: Attention::graph,
    })]
}

fn of(problem: &PrefillProblem) -> Result<Attention, String> {
    let shape = &problem.shape;
    let single = shape.q_lens.iter().all(|&length| length <= 1);
    if problem.op.has_lse() && single && shape.heads != shape.kv_heads {
        // Its kernels for single queries treat a group's heads as rows, and skip most of them.
        return Err(
            "for single queries with grouped heads it does not write the whole lse".to_owned(),
        );
    }
    Ok(Attention {
        q_lens: shape.q_lens.clone(),
        kv_lens: shape.kv_lens.clone(),
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        value_dim: shape.value_dim(),
        causal: shape.causal,
        scale: problem.scale,
        data_type: match problem.dtype() {
            DType::F16 => DataType::F16,
            DType::Bf16 => DataType::Bf16,
            other => return Err(format!("{other} is not supported; use f16 or bf16")),
        },
        with_lse: problem.op.has_lse(),
    })
}
