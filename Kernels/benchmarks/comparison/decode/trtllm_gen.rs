//! TRT-LLM-gen's decode over paged caches on sm_100a, through FlashInfer's runner.

use contender::{Buffer, Contender, ContenderError, DeviceInfo};
use flashinfer::TrtllmGenChoice;
use workloads::{decode_tensor, DecodeProblem, KvType};

use super::flashinfer::call;
use super::pages::pages;
use super::planned::{self, Kernel, Plan};
use super::trtllm_gen_shared::{self as shared, absent, identity};

struct TrtllmGenDecode;

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    vec![planned::contender(
        identity("the attention kernel, which merges what it splits; chosen and loaded in bind"),
        TrtllmGenDecode,
    )]
}

/// What the library would launch on such a device; no device is needed.
pub fn choices(
    problem: &DecodeProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    if problem.shape.kv_type == KvType::Fp8 {
        return Err(ContenderError::new(
            "no kernel over FP8 caches in this build",
        ));
    }
    let (call, pages) = (call(problem, |_| 0)?, pages(&problem.table, 0)?);
    shared::choices(device, |device| {
        flashinfer::choose_trtllm_gen_decode(&call, &pages, device)
    })
}

impl Kernel<DecodeProblem> for TrtllmGenDecode {
    fn unsupported(&self, problem: &DecodeProblem, device: &DeviceInfo) -> Option<String> {
        absent(problem.dtype, device)
            .or_else(|| problem.table.shorter_than(problem.shape.q_len))
            .or_else(|| Some(choices(problem, device).err()?.to_string()))
    }

    fn plan(&self, problem: &DecodeProblem, buffers: &[Buffer]) -> Plan {
        let at = |tensor: usize| buffers[tensor].address;
        let call = call(problem, at)?;
        let pages = pages(&problem.table, at(decode_tensor::KV_LEN))?;
        flashinfer::plan_trtllm_gen_decode(&call, &pages).map_err(ContenderError::new)
    }
}
