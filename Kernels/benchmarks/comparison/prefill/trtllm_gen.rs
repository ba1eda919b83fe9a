//! TRT-LLM-gen's ragged prefill on sm_100a, through FlashInfer's runner.

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Support};
use flashinfer::TrtllmGenChoice;
use workloads::{PrefillOp, PrefillProblem};

use super::flashinfer::{call, starts};
use super::planned::BoundPlan;
use super::trtllm_gen_shared::{absent, devices, identity};

struct TrtllmGenPrefill {
    identity: Identity,
}

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    vec![Box::new(TrtllmGenPrefill {
        identity: identity("the attention kernel; chosen and loaded in bind"),
    })]
}

/// What the library would launch on such a device; no device is needed. An error is its reason for
/// having no kernel.
pub fn choices(
    problem: &PrefillProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let shape = &problem.shape;
    let call = call(problem, |_| 0)?;
    let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
    devices(device)
        .into_iter()
        .map(|device| flashinfer::choose_trtllm_gen_prefill(&call, &q_starts, &kv_starts, device))
        .collect::<Result<_, _>>()
        .map_err(ContenderError::new)
}

fn unsupported(problem: &PrefillProblem, device: &DeviceInfo) -> Option<String> {
    if let Some(reason) = absent(problem.dtype, device) {
        return Some(reason);
    }
    if problem.op == PrefillOp::PrefillLse {
        return Some("its LSE comes from a kernel of its own; only the output is compared".into());
    }
    if problem.shape.q_lens.contains(&0) {
        return Some("a request without queries, which its kernels are not written for".into());
    }
    choices(problem, device)
        .err()
        .map(|error| error.to_string())
}

impl Contender<PrefillProblem> for TrtllmGenPrefill {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
        match unsupported(problem, device) {
            Some(reason) => Support::No(reason),
            None => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &PrefillProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let shape = &problem.shape;
        let call = call(problem, |tensor| buffers[tensor].address)?;
        let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
        let planned = flashinfer::plan_trtllm_gen_prefill(&call, &q_starts, &kv_starts)
            .map_err(ContenderError::new)?;
        Ok(Box::new(BoundPlan(planned)))
    }
}
