//! FlashInfer's XQA, which its decode function uses on Hopper.

use contender::{ContenderError, Contenders, Problem, Tensors};
use flashinfer_contender::pages::pages;
use flashinfer_contender::{contender, dtype, identity, Plan};
use workloads::{DecodeProblem, KvType};

use crate::flashinfer::call;

/// Tokens of a page, which kernels have compiled in.
const PAGES: [usize; 4] = [16, 32, 64, 128];

pub fn contenders() -> Contenders<DecodeProblem> {
    let region = "the attention kernel, which merges its own splits; page rows made in bind";
    vec![contender(
        identity("flashinfer_xqa", region),
        |problem, _device| unsupported(problem),
        plan,
    )]
}

fn unsupported(problem: &DecodeProblem) -> Option<String> {
    let shape = &problem.shape;
    if !PAGES.contains(&shape.page_size) {
        return Some(format!(
            "pages of {}; it supports {PAGES:?}",
            shape.page_size
        ));
    }
    let fp8 = shape.kv_type == KvType::Fp8;
    let built = dtype(problem.dtype()).is_some_and(|dtype| {
        flashinfer::has_xqa(
            dtype,
            shape.head_dim as u32,
            shape.group() as u32,
            shape.page_size as u32,
            shape.q_len as u32,
            fp8,
        )
    });
    if !built {
        return Some(format!(
            "not built: {}{}, head size {}, {} query heads per KV head, pages of {}{}; \
             Kernels/baselines/flashinfer/README.md says how to add it",
            problem.dtype(),
            if fp8 { " over FP8" } else { "" },
            shape.head_dim,
            shape.group(),
            shape.page_size,
            if shape.q_len > 1 {
                ", several new tokens"
            } else {
                ""
            },
        ));
    }
    problem.table.shorter_than(shape.q_len)
}

fn plan(problem: &DecodeProblem, tensors: &Tensors) -> Plan {
    let (call, pages) = (call(problem, tensors)?, pages(&problem.table, tensors)?);
    flashinfer::plan_xqa(&call, &pages).map_err(ContenderError::new)
}
