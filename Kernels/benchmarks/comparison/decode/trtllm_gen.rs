//! TRT-LLM-gen's decode over paged caches on sm_100a, through FlashInfer's runner.

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Support};
use flashinfer::TrtllmGenChoice;
use workloads::{decode_tensor, DecodeProblem, KvType};

use super::flashinfer::call;
use super::pages::pages;
use super::planned::BoundPlan;
use super::trtllm_gen_shared::{absent, devices, identity};

struct TrtllmGenDecode {
    identity: Identity,
}

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    vec![Box::new(TrtllmGenDecode {
        identity: identity(
            "the attention kernel, which merges what it splits; chosen and loaded in bind",
        ),
    })]
}

/// What the library would launch on such a device; no device is needed. An error is its reason for
/// having no kernel.
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
    devices(device)
        .into_iter()
        .map(|device| flashinfer::choose_trtllm_gen_decode(&call, &pages, device))
        .collect::<Result<_, _>>()
        .map_err(ContenderError::new)
}

fn unsupported(problem: &DecodeProblem, device: &DeviceInfo) -> Option<String> {
    if let Some(reason) = absent(problem.dtype, device) {
        return Some(reason);
    }
    let shape = &problem.shape;
    if shape.lengths.iter().any(|&length| length < shape.q_len) {
        return Some("a sequence is shorter than its new tokens".to_owned());
    }
    choices(problem, device)
        .err()
        .map(|error| error.to_string())
}

impl Contender<DecodeProblem> for TrtllmGenDecode {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &DecodeProblem, device: &DeviceInfo) -> Support {
        match unsupported(problem, device) {
            Some(reason) => Support::No(reason),
            None => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &DecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let at = |tensor: usize| buffers[tensor].address;
        let call = call(problem, at)?;
        let pages = pages(&problem.table, at(decode_tensor::KV_LEN))?;
        let planned =
            flashinfer::plan_trtllm_gen_decode(&call, &pages).map_err(ContenderError::new)?;
        Ok(Box::new(BoundPlan(planned)))
    }
}
