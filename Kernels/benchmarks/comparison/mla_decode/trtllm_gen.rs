//! TRT-LLM-gen's decode with latent attention on sm_100a, through FlashInfer's runner.

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Support};
use flashinfer::TrtllmGenChoice;
use workloads::{mla_tensor, MlaDecodeProblem};

use super::flashinfer::call;
use super::pages::pages;
use super::planned::BoundPlan;
use super::trtllm_gen_shared::{absent, devices, identity};

struct TrtllmGenMla {
    identity: Identity,
}

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    vec![Box::new(TrtllmGenMla {
        identity: identity(
            "the attention kernel, and the merge where it leaves that to a second one; chosen and \
             loaded in bind",
        ),
    })]
}

/// What the library would launch on such a device; no device is needed. An error is its reason for
/// having no kernel.
pub fn choices(
    problem: &MlaDecodeProblem,
    device: &DeviceInfo,
) -> Result<Vec<TrtllmGenChoice>, ContenderError> {
    let (call, pages) = (call(problem, |_| 0)?, pages(&problem.table, 0)?);
    devices(device)
        .into_iter()
        .map(|device| flashinfer::choose_trtllm_gen_mla(&call, &pages, device))
        .collect::<Result<_, _>>()
        .map_err(ContenderError::new)
}

fn unsupported(problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
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

impl Contender<MlaDecodeProblem> for TrtllmGenMla {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
        match unsupported(problem, device) {
            Some(reason) => Support::No(reason),
            None => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &MlaDecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let at = |tensor: usize| buffers[tensor].address;
        let call = call(problem, at)?;
        let pages = pages(&problem.table, at(mla_tensor::KV_LEN))?;
        let planned =
            flashinfer::plan_trtllm_gen_mla(&call, &pages).map_err(ContenderError::new)?;
        Ok(Box::new(BoundPlan(planned)))
    }
}
