//! TRT-LLM-gen's ragged prefill on sm_100a, through FlashInfer's runner.

use contender::{ContenderError, Contenders, DeviceInfo, Problem, Tensors};
use flashinfer::TrtllmGenChoice;
use flashinfer_contender::trtllm_gen::{self as shared, absent, identity};
use flashinfer_contender::{contender, Plan};
use workloads::{PrefillOp, PrefillProblem};

use crate::flashinfer::{call, starts};

pub fn contenders() -> Contenders<PrefillProblem> {
    let region = "the attention kernel; chosen and loaded in bind";
    vec![contender(identity(region), unsupported, plan)]
}

/// What the library would launch on such a device; needs no device.
pub fn choices(
    problem: &PrefillProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let shape = &problem.shape;
    let call = call(problem, &Tensors::unbound(problem))?;
    let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
    shared::choices(device, |device| {
        flashinfer::choose_trtllm_gen_prefill(&call, &q_starts, &kv_starts, device)
    })
}

fn unsupported(problem: &PrefillProblem, device: &DeviceInfo) -> Option<String> {
    if let Some(reason) = absent(problem.dtype(), device) {
        return Some(reason);
    }
    if problem.op == PrefillOp::PrefillLse {
        return Some("its LSE comes from a separate kernel; only the output is compared".into());
    }
    if problem.shape.q_lens.contains(&0) {
        return Some("a request without queries, which its kernels do not handle".into());
    }
    Some(choices(problem, device).err()?.to_string())
}

fn plan(problem: &PrefillProblem, tensors: &Tensors) -> Plan {
    let (call, shape) = (call(problem, tensors)?, &problem.shape);
    let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
    flashinfer::plan_trtllm_gen_prefill(&call, &q_starts, &kv_starts).map_err(ContenderError::new)
}
