//! cuDNN's fused attention.

#[path = "../cudnn_planned.rs"]
mod planned;

use contender::Contender;
use cudnn::{Attention, DataType, Graph};
use numeric::DType;
use workloads::PrefillProblem;

use planned::Operation;

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    vec![planned::contender::<_, Attention>()]
}

impl Operation<PrefillProblem> for Attention {
    /// The cumulative lengths (3 and 4) are part of the plan.
    const ARGUMENTS: &'static [usize] = &[0, 1, 2, 5, 6];

    fn of(problem: &PrefillProblem) -> Result<Self, String> {
        let shape = &problem.shape;
        let single = shape.q_lens.iter().all(|&length| length <= 1);
        if problem.op.has_lse() && single && shape.heads != shape.kv_heads {
            // Its kernels for single queries take the heads of a group for rows, and leave most of the
            // tensor out.
            return Err(
                "of single queries with grouped heads it does not write the whole lse".to_owned(),
            );
        }
        Ok(Self {
            q_lens: shape.q_lens.clone(),
            kv_lens: shape.kv_lens.clone(),
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            causal: shape.causal,
            scale: problem.scale,
            data_type: match problem.dtype {
                DType::F16 => DataType::F16,
                DType::Bf16 => DataType::Bf16,
                other => return Err(format!("no {other}; f16 or bf16")),
            },
            with_lse: problem.op.has_lse(),
        })
    }

    fn graph(&self) -> Result<Graph, cudnn::Error> {
        Attention::graph(self)
    }
}
