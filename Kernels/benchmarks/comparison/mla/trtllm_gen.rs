//! TRT-LLM-gen's latent attention decode on sm_100a, through FlashInfer's runner.

use contender::{ContenderError, Contenders, DeviceInfo, Problem, Tensors};
use flashinfer::TrtllmGenChoice;
use flashinfer_contender::pages::pages;
use flashinfer_contender::trtllm_gen::{self as shared, absent, identity};
use flashinfer_contender::{contender, Plan};
use workloads::MlaDecodeProblem;

use crate::flashinfer::{call, over_fp8};

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    let region = "the attention kernel, and the merge if that is a separate kernel; chosen and \
                  loaded in bind";
    vec![contender(identity(region), unsupported, plan)]
}

/// What the library would launch on such a device; needs no device.
pub fn choices(
    problem: &MlaDecodeProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    if let Some(reason) = over_fp8(problem) {
        return Err(ContenderError::new(reason));
    }
    let tensors = Tensors::unbound(problem);
    let (call, pages) = (call(problem, &tensors)?, pages(&problem.table, &tensors)?);
    shared::choices(device, |device| {
        flashinfer::choose_trtllm_gen_mla(&call, &pages, device)
    })
}

fn unsupported(problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
    absent(problem.dtype(), device)
        .or_else(|| problem.table.shorter_than(problem.shape.q_len))
        .or_else(|| Some(choices(problem, device).err()?.to_string()))
}

fn plan(problem: &MlaDecodeProblem, tensors: &Tensors) -> Plan {
    let call = call(problem, tensors)?;
    let pages = pages(&problem.table, tensors)?;
    flashinfer::plan_trtllm_gen_mla(&call, &pages).map_err(ContenderError::new)
}
