//! TRT-LLM-gen's ragged prefill on sm_100a, through FlashInfer's runner.

use contender::{Buffer, Contender, ContenderError, DeviceInfo};
use flashinfer::TrtllmGenChoice;
use workloads::{PrefillOp, PrefillProblem};

use super::flashinfer::{call, starts};
use super::planned::{self, Kernel, Plan};
use super::trtllm_gen_shared::{self as shared, absent, identity};

struct TrtllmGenPrefill;

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    vec![planned::contender(
        identity("the attention kernel; chosen and loaded in bind"),
        TrtllmGenPrefill,
    )]
}

/// What the library would launch on such a device; no device is needed.
pub fn choices(
    problem: &PrefillProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let shape = &problem.shape;
    let call = call(problem, |_| 0)?;
    let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
    shared::choices(device, |device| {
        flashinfer::choose_trtllm_gen_prefill(&call, &q_starts, &kv_starts, device)
    })
}

impl Kernel<PrefillProblem> for TrtllmGenPrefill {
    fn unsupported(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Option<String> {
        if let Some(reason) = absent(problem.dtype, device) {
            return Some(reason);
        }
        if problem.op == PrefillOp::PrefillLse {
            return Some(
                "its LSE comes from a kernel of its own; only the output is compared".into(),
            );
        }
        if problem.shape.q_lens.contains(&0) {
            return Some("a request without queries, which its kernels are not written for".into());
        }
        Some(choices(problem, device).err()?.to_string())
    }

    fn plan(&self, problem: &PrefillProblem, buffers: &[Buffer]) -> Plan {
        let shape = &problem.shape;
        let call = call(problem, |tensor| buffers[tensor].address)?;
        let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
        flashinfer::plan_trtllm_gen_prefill(&call, &q_starts, &kv_starts)
            .map_err(ContenderError::new)
    }
}
