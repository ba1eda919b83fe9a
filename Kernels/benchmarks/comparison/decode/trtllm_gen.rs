//! TRT-LLM-gen's decode over paged caches on sm_100a, through FlashInfer's runner.

use contender::{ContenderError, Contenders, DeviceInfo, Problem, Tensors};
use flashinfer::TrtllmGenChoice;
use flashinfer_contender::pages::pages;
use flashinfer_contender::trtllm_gen::{self as shared, absent, identity};
use flashinfer_contender::{contender, Plan};
use workloads::DecodeProblem;

use crate::flashinfer::call;

pub fn contenders() -> Contenders<DecodeProblem> {
    let region = "the attention kernel, which merges its own splits; chosen and loaded in bind";
    vec![contender(identity(region), unsupported, plan)]
}

/// What the library would launch on such a device; needs no device.
pub fn choices(
    problem: &DecodeProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let tensors = Tensors::unbound(problem);
    let (call, pages) = (call(problem, &tensors)?, pages(&problem.table, &tensors)?);
    shared::choices(device, |device| {
        flashinfer::choose_trtllm_gen_decode(&call, &pages, device)
    })
}

fn unsupported(problem: &DecodeProblem, device: &DeviceInfo) -> Option<String> {
    absent(problem.dtype(), device)
        .or_else(|| problem.table.shorter_than(problem.shape.q_len))
        .or_else(|| Some(choices(problem, device).err()?.to_string()))
}

fn plan(problem: &DecodeProblem, tensors: &Tensors) -> Plan {
    let call = call(problem, tensors)?;
    let pages = pages(&problem.table, tensors)?;
    flashinfer::plan_trtllm_gen_decode(&call, &pages).map_err(ContenderError::new)
}
