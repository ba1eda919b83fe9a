//! cuDNN's fused attention.

#[path = "../cudnn_planned.rs"]
mod planned;

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Support};
use cudnn::{Attention, LastPlan};
use workloads::PrefillProblem;

use planned::BoundLaunch;

struct CudnnPrefill {
    identity: Identity,
    last: LastPlan<Attention>,
}

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    vec![Box::new(CudnnPrefill {
        identity: planned::identity(),
        last: LastPlan::default(),
    })]
}

/// A problem as cuDNN sees it, or why it has none.
fn attention(problem: &PrefillProblem) -> Result<Attention, String> {
    let shape = &problem.shape;
    let single = shape.q_lens.iter().all(|&length| length <= 1);
    if problem.op.has_lse() && single && shape.heads != shape.kv_heads {
        // Its kernels for single queries take the heads of a group for rows, and leave most of the
        // tensor out.
        return Err(
            "of single queries with grouped heads it does not write the whole lse".to_owned(),
        );
    }
    Ok(Attention {
        q_lens: shape.q_lens.clone(),
        kv_lens: shape.kv_lens.clone(),
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        causal: shape.causal,
        scale: problem.scale,
        data_type: planned::data_type(problem.dtype)?,
        with_lse: problem.op.has_lse(),
    })
}

impl Contender<PrefillProblem> for CudnnPrefill {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the plan, because only cuDNN knows what it can do.
    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
        if let Some(reason) = planned::absent(device) {
            return Support::No(reason);
        }
        let planned = attention(problem).and_then(|attention| {
            let plan = self.last.of(&attention, Attention::plan);
            plan.map_err(|error| error.to_string())
        });
        match planned {
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn bind(
        &self,
        problem: &PrefillProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let attention = attention(problem).map_err(ContenderError::new)?;
        let plan = self.last.of(&attention, Attention::plan);
        let plan = plan.map_err(ContenderError::new)?;
        // The cumulative lengths (3 and 4) are part of the plan.
        let arguments = [0, 1, 2, 5, 6].into_iter();
        let addresses: Vec<usize> = arguments
            .filter_map(|tensor| buffers.get(tensor))
            .map(|buffer| buffer.address)
            .collect();
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        Ok(Box::new(BoundLaunch(launch)))
    }
}
