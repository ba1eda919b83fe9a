//! TRT-LLM-gen's decode with latent attention on sm_100a, through FlashInfer's runner.

use contender::{Buffer, Contender, ContenderError, DeviceInfo};
use flashinfer::TrtllmGenChoice;
use workloads::{mla_tensor, MlaDecodeProblem};

use super::flashinfer::call;
use super::pages::pages;
use super::planned::{self, Kernel, Plan};
use super::trtllm_gen_shared::{self as shared, absent, identity};

struct TrtllmGenMla;

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    vec![planned::contender(
        identity(
            "the attention kernel, and the merge where it leaves that to a second one; chosen and \
             loaded in bind",
        ),
        TrtllmGenMla,
    )]
}

/// What the library would launch on such a device; no device is needed.
pub fn choices(
    problem: &MlaDecodeProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let (call, pages) = (call(problem, |_| 0)?, pages(&problem.table, 0)?);
    shared::choices(device, |device| {
        flashinfer::choose_trtllm_gen_mla(&call, &pages, device)
    })
}

impl Kernel<MlaDecodeProblem> for TrtllmGenMla {
    fn unsupported(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
        absent(problem.dtype, device)
            .or_else(|| problem.table.shorter_than(problem.shape.q_len))
            .or_else(|| Some(choices(problem, device).err()?.to_string()))
    }

    fn plan(&self, problem: &MlaDecodeProblem, buffers: &[Buffer]) -> Plan {
        let at = |tensor: usize| buffers[tensor].address;
        let call = call(problem, at)?;
        let pages = pages(&problem.table, at(mla_tensor::KV_LEN))?;
        flashinfer::plan_trtllm_gen_mla(&call, &pages).map_err(ContenderError::new)
    }
}
