//! cuDNN's attention over a paged cache.

#[path = "../cudnn_planned.rs"]
mod planned;

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Support};
use cudnn::{LastPlan, PagedAttention};
use workloads::{decode_tensor as at, DecodeProblem, KvLayout, KvType};

use planned::BoundLaunch;

struct CudnnDecode {
    identity: Identity,
    last: LastPlan<PagedAttention>,
}

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    vec![Box::new(CudnnDecode {
        identity: planned::identity(),
        last: LastPlan::default(),
    })]
}

/// A problem as cuDNN sees it, or why it has none.
fn attention(problem: &DecodeProblem) -> Result<PagedAttention, String> {
    let shape = &problem.shape;
    if shape.kv_type == KvType::Fp8 {
        return Err("an FP8 cache needs FP8 queries".to_owned());
    }
    if shape.lengths.iter().any(|&length| length < shape.q_len) {
        return Err("a sequence is shorter than its new tokens".to_owned());
    }
    problem
        .table
        .validate()
        .map_err(|error| error.to_string())?;
    Ok(PagedAttention {
        q_len: shape.q_len,
        kv_lens: shape.lengths.clone(),
        page_indptr: problem.table.indptr.clone(),
        page_indices: problem.table.indices.clone(),
        pool_pages: problem.table.pool_pages,
        page_size: shape.page_size,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        heads_first: shape.layout == KvLayout::Hnd,
        scale: problem.scale,
        data_type: planned::data_type(problem.dtype)?,
    })
}

impl Contender<DecodeProblem> for CudnnDecode {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the plan, because only cuDNN knows what it can do.
    fn supports(&self, problem: &DecodeProblem, device: &DeviceInfo) -> Support {
        if let Some(reason) = planned::absent(device) {
            return Support::No(reason);
        }
        let planned = attention(problem).and_then(|attention| {
            let plan = self.last.of(&attention, PagedAttention::plan);
            plan.map_err(|error| error.to_string())
        });
        match planned {
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn bind(
        &self,
        problem: &DecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let attention = attention(problem).map_err(ContenderError::new)?;
        let plan = self.last.of(&attention, PagedAttention::plan);
        let plan = plan.map_err(ContenderError::new)?;
        let arguments = [at::Q, at::K_PAGES, at::V_PAGES, at::OUT];
        let addresses = arguments.map(|tensor| buffers[tensor].address);
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        Ok(Box::new(BoundLaunch(launch)))
    }
}
