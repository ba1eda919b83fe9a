//! FlashInfer's CUTLASS kernel for decode with latent attention, on sm_100a.

use contender::{Buffer, Contender, ContenderError, DeviceInfo};
use numeric::DType;
use workloads::{mla_tensor, MlaDecodeProblem};

use super::flashinfer::call;
use super::pages::pages;
use super::planned::{self, Kernel, Plan};

const HEADS: usize = 128;

struct CutlassMla;

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    let identity = planned::identity(
        "flashinfer_mla_cutlass",
        "the attention kernel, and the merge where it splits; arguments made in bind",
    );
    vec![planned::contender(identity, CutlassMla)]
}

impl Kernel<MlaDecodeProblem> for CutlassMla {
    fn unsupported(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
        let shape = &problem.shape;
        if device.arch != "sm_100a" {
            return Some(format!("for sm_100a; this is {}", device.arch));
        }
        if problem.dtype != DType::Bf16 || !flashinfer::has_mla_cutlass() {
            return Some(format!("no {} kernel in this build", problem.dtype));
        }
        if shape.heads != HEADS || shape.q_len != 1 {
            return Some(format!(
                "{} new tokens of {} heads; its kernel takes one of {HEADS}",
                shape.q_len, shape.heads
            ));
        }
        if !shape.page_size.is_power_of_two() || shape.page_size > 128 {
            let page_size = shape.page_size;
            return Some(format!("pages of {page_size}; powers of two up to 128"));
        }
        if shape.lengths.contains(&0) {
            return Some("an empty sequence, which its kernel is not written for".to_owned());
        }
        None
    }

    fn plan(&self, problem: &MlaDecodeProblem, buffers: &[Buffer]) -> Plan {
        let at = |tensor: usize| buffers[tensor].address;
        let call = call(problem, at)?;
        let pages = pages(&problem.table, at(mla_tensor::KV_LEN))?;
        flashinfer::plan_mla_cutlass(&call, &pages).map_err(ContenderError::new)
    }
}
