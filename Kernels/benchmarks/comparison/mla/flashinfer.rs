//! FlashInfer's latent attention decode: its FA2 kernel on every device, its Hopper kernel on
//! sm_90a.

use contender::{ContenderError, Contenders, DeviceInfo, Problem, Tensors};
use flashinfer::{Dtype, MlaDecode, MlaKernel};
use flashinfer_contender::{contender, dtype, identity, narrow, Plan};
use workloads::{KvType, MlaDecodeProblem};

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    let region = "one kernel, which merges its own splits; planned in bind";
    let contender = |name, kernel| {
        contender(
            identity(name, region),
            move |problem, device| unsupported(kernel, problem, device),
            move |problem, tensors| plan(kernel, problem, tensors),
        )
    };
    vec![
        contender("flashinfer_mla_fa2", MlaKernel::Fa2),
        contender("flashinfer_mla_hopper", MlaKernel::Hopper),
    ]
}

fn unsupported(
    kernel: MlaKernel,
    problem: &MlaDecodeProblem,
    device: &DeviceInfo,
) -> Option<String> {
    let q_len = problem.shape.q_len;
    if kernel == MlaKernel::Hopper && device.arch != "sm_90a" {
        return Some(format!("only for sm_90a; this is {}", device.arch));
    }
    if dtype(problem.dtype()) != Some(Dtype::Bf16) || !flashinfer::has_mla_decode(kernel) {
        return Some(format!("no {} kernel in this build", problem.dtype()));
    }
    if let Some(reason) = over_fp8(problem) {
        return Some(reason);
    }
    if q_len > 1 {
        return problem.table.shorter_than(q_len);
    }
    None
}

/// Why none of the library's kernels reads the cache, if so.
pub fn over_fp8(problem: &MlaDecodeProblem) -> Option<String> {
    let fp8 = problem.shape.kv_type == KvType::Fp8;
    fp8.then(|| "no kernel over FP8 caches in this build".to_owned())
}

fn plan(kernel: MlaKernel, problem: &MlaDecodeProblem, tensors: &Tensors) -> Plan {
    let table = &problem.table;
    table.validate().map_err(ContenderError::new)?;
    let call = call(problem, tensors)?;
    flashinfer::plan_mla_decode(kernel, &call, &table.indptr, &table.lengths)
        .map_err(ContenderError::new)
}

/// The problem in the library's terms.
pub fn call(problem: &MlaDecodeProblem, tensors: &Tensors) -> Result<MlaDecode, ContenderError> {
    let shape = &problem.shape;
    Ok(MlaDecode {
        q: tensors.address("q")?,
        cache: tensors.address("cache")?,
        out: tensors.address("out")?,
        page_indices: tensors.address("page_indices")?,
        q_len: narrow(shape.q_len)?,
        heads: narrow(shape.heads)?,
        page_size: narrow(shape.page_size)?,
        scale: problem.scale,
    })
}
