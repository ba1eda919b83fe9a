//! FlashInfer's CUTLASS kernel for latent attention decode, on sm_100a.

use contender::{ContenderError, Contenders, DeviceInfo, Problem, Tensors};
use flashinfer_contender::pages::pages;
use flashinfer_contender::{contender, identity, Plan};
use numeric::DType;
use workloads::MlaDecodeProblem;

use crate::flashinfer::{call, over_fp8};

const HEADS: usize = 128;
/// Tokens that it reads at once.
const TILE: usize = 128;

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    let identity = identity(
        "flashinfer_mla_cutlass",
        "the attention kernel, and the merge if it splits; arguments built in bind",
    );
    vec![contender(identity, unsupported, plan)]
}

fn unsupported(problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
    let shape = &problem.shape;
    if device.arch != "sm_100a" {
        return Some(format!("only for sm_100a; this is {}", device.arch));
    }
    if problem.dtype() != DType::Bf16 || !flashinfer::has_mla_cutlass() {
        return Some(format!("no {} kernel in this build", problem.dtype()));
    }
    if let Some(reason) = over_fp8(problem) {
        return Some(reason);
    }
    if shape.heads != HEADS || shape.q_len != 1 {
        return Some(format!(
            "{} new tokens of {} heads; its kernel takes one of {HEADS}",
            shape.q_len, shape.heads
        ));
    }
    if !shape.page_size.is_power_of_two() || shape.page_size > 128 {
        let page_size = shape.page_size;
        return Some(format!("pages of {page_size}; use powers of two up to 128"));
    }
    if shape.lengths.contains(&0) {
        return Some("an empty sequence, which its kernel does not handle".to_owned());
    }
    // Weights of zero do not hide what lies in pages behind the last token: here NaN.
    if let Some(length) = shape.lengths.iter().find(|length| *length % TILE != 0) {
        return Some(format!(
            "a sequence of {length} tokens; its kernel computes with cached values up to the next \
             multiple of {TILE}"
        ));
    }
    None
}

fn plan(problem: &MlaDecodeProblem, tensors: &Tensors) -> Plan {
    let call = call(problem, tensors)?;
    let pages = pages(&problem.table, tensors)?;
    flashinfer::plan_mla_cutlass(&call, &pages).map_err(ContenderError::new)
}
