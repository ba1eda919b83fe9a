//! FlashInfer's ragged prefill: its FA2 template on every device, its FA3 template on sm_90a, its
//! CUTLASS kernel on sm_100a.

use contender::{ContenderError, Contenders, DeviceInfo, Problem, Tensors};
use flashinfer::{Prefill, PrefillKernel};
use flashinfer_contender::{contender, dtype, identity, narrow, Plan};
use workloads::{PrefillOp, PrefillProblem};

/// The FA2 template's offsets are 32 bits wide.
const MAX_ELEMENTS: usize = 1 << 32;
/// FA3 plans tiles of 128 queries (192 for a head size of 64), and beyond this many needs a kernel
/// that is not in this build.
const MAX_FA3_TILES: usize = 4096;

pub fn contenders() -> Contenders<PrefillProblem> {
    let contender = |name, kernel, region| {
        contender(
            identity(name, region),
            move |problem, device| unsupported(kernel, problem, device),
            move |problem, tensors| plan(kernel, problem, tensors),
        )
    };
    vec![
        contender(
            "flashinfer_fa2",
            PrefillKernel::Fa2,
            "the attention kernel, and the merge if the plan splits KV; planned in bind",
        ),
        contender(
            "flashinfer_fa3",
            PrefillKernel::Fa3,
            "the attention kernel; planned in bind",
        ),
        contender(
            "flashinfer_cutlass",
            PrefillKernel::Cutlass,
            "the attention kernel; planned in bind",
        ),
    ]
}

fn unsupported(
    kernel: PrefillKernel,
    problem: &PrefillProblem,
    device: &DeviceInfo,
) -> Option<String> {
    let shape = &problem.shape;
    let only = match kernel {
        PrefillKernel::Fa3 => Some("sm_90a"),
        PrefillKernel::Cutlass => Some("sm_100a"),
        _ => None,
    };
    if let Some(arch) = only.filter(|arch| *arch != device.arch) {
        return Some(format!("only for {arch}; this is {}", device.arch));
    }
    if problem.op == PrefillOp::PrefillLse {
        return Some("its LSE is in base 2; only the output is compared".to_owned());
    }
    let [head_dim, value_dim] = [shape.head_dim, shape.value_dim()].map(|size| size as u32);
    let built = dtype(problem.dtype())
        .is_some_and(|dtype| flashinfer::has_prefill(kernel, dtype, head_dim, value_dim));
    if !built {
        return Some(format!(
            "no {} kernel with a head size of {} in this build",
            problem.dtype(),
            shape.dims()
        ));
    }
    if kernel == PrefillKernel::Cutlass && !shape.causal {
        return Some("only the causal kernel is in this build".to_owned());
    }
    let widest = shape.total_q() * shape.heads.max(1);
    let widest = widest.max(shape.total_kv() * shape.kv_heads) * shape.head_dim;
    if kernel == PrefillKernel::Fa2 && widest >= MAX_ELEMENTS {
        return Some(format!("{widest} elements; its offsets are 32 bits wide"));
    }
    let tile = if value_dim == 64 { 192 } else { 128 };
    let tiles = shape.total_q().div_ceil(tile) + shape.batch() - 1;
    if kernel == PrefillKernel::Fa3 && tiles > MAX_FA3_TILES {
        return Some(format!(
            "up to {tiles} query tiles; above {MAX_FA3_TILES} FA3 needs a kernel that is \
             not in this build"
        ));
    }
    None
}

fn plan(kernel: PrefillKernel, problem: &PrefillProblem, tensors: &Tensors) -> Plan {
    let (call, shape) = (call(problem, tensors)?, &problem.shape);
    let (q_starts, kv_starts) = (starts(&shape.q_lens)?, starts(&shape.kv_lens)?);
    flashinfer::plan_prefill(kernel, &call, &q_starts, &kv_starts).map_err(ContenderError::new)
}

/// The problem in the library's terms.
pub fn call(problem: &PrefillProblem, tensors: &Tensors) -> Result<Prefill, ContenderError> {
    let shape = &problem.shape;
    let dtype = dtype(problem.dtype())
        .ok_or_else(|| ContenderError::new(format!("no {} kernel", problem.dtype())))?;
    Ok(Prefill {
        q: tensors.address("q")?,
        k: tensors.address("k")?,
        v: tensors.address("v")?,
        cu_q: tensors.address("cu_q")?,
        cu_kv: tensors.address("cu_kv")?,
        out: tensors.address("out")?,
        heads: narrow(shape.heads)?,
        kv_heads: narrow(shape.kv_heads)?,
        head_dim: narrow(shape.head_dim)?,
        value_dim: narrow(shape.value_dim())?,
        dtype,
        causal: shape.causal,
        scale: problem.scale,
    })
}

/// The host's copy of cumulative lengths.
pub fn starts(lengths: &[usize]) -> Result<Vec<i32>, ContenderError> {
    let mut starts = vec![0];
    let mut end = 0usize;
    for length in lengths {
        end += length;
        let start = i32::try_from(end);
        starts.push(start.map_err(|_| ContenderError::new(format!("{end} tokens; at most 2^31")))?);
    }
    Ok(starts)
}
