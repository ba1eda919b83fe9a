//! FlashInfer's decode over paged caches: its CUDA-core kernel, and its prefill kernel over pages,
//! which it recommends if query heads share KV heads.

use contender::{ContenderError, Contenders, Problem, Tensors};
use flashinfer::{Decode, DecodeKernel};
use flashinfer_contender::{contender, dtype, identity, narrow, Plan};
use workloads::{DecodeProblem, KvLayout, KvType};

/// Supported group sizes (query heads per KV head) on CUDA cores.
const GROUPS: [usize; 5] = [1, 2, 3, 4, 8];

/// Queries times heads per KV head on tensor cores: the tiles that are built.
const ROWS: usize = 64;
const FP8_ROWS: usize = 16;

pub fn contenders() -> Contenders<DecodeProblem> {
    let region = "the attention kernel, and the merge if the plan splits KV; planned in bind";
    let contender = |name, kernel| {
        contender(
            identity(name, region),
            move |problem, _device| unsupported(kernel, problem),
            move |problem, tensors| plan(kernel, problem, tensors),
        )
    };
    vec![
        contender("flashinfer_decode_tc", DecodeKernel::TensorCores),
        contender("flashinfer_decode", DecodeKernel::CudaCores),
    ]
}

fn unsupported(kernel: DecodeKernel, problem: &DecodeProblem) -> Option<String> {
    let shape = &problem.shape;
    let on_cuda_cores = kernel == DecodeKernel::CudaCores;
    let fp8 = shape.kv_type == KvType::Fp8;
    let built = dtype(problem.dtype())
        .is_some_and(|dtype| flashinfer::has_decode(kernel, dtype, shape.head_dim as u32, fp8));
    if !built {
        return Some(format!(
            "no {} kernel with a head size of {}{} in this build",
            problem.dtype(),
            shape.head_dim,
            if fp8 { " over FP8" } else { "" }
        ));
    }
    let (rows, most) = (
        shape.q_len * shape.group(),
        if fp8 { FP8_ROWS } else { ROWS },
    );
    if !on_cuda_cores && rows > most {
        return Some(format!(
            "{rows} query rows per KV head; this build has tiles of {most}"
        ));
    }
    if fp8 && shape.q_len > 1 {
        return Some(format!(
            "{} new tokens over FP8; this build supports one",
            shape.q_len
        ));
    }
    if on_cuda_cores && shape.q_len != 1 {
        return Some(format!("{} new tokens; it supports one", shape.q_len));
    }
    if on_cuda_cores && !GROUPS.contains(&shape.group()) {
        return Some(format!(
            "{} query heads per KV head; it supports {GROUPS:?}",
            shape.group()
        ));
    }
    if shape.q_len > 1 {
        return problem.table.shorter_than(shape.q_len);
    }
    None
}

fn plan(kernel: DecodeKernel, problem: &DecodeProblem, tensors: &Tensors) -> Plan {
    let call = call(problem, tensors)?;
    problem.table.validate().map_err(ContenderError::new)?;
    flashinfer::plan_decode(kernel, &call, &problem.table.indptr).map_err(ContenderError::new)
}

/// The problem in the library's terms.
pub fn call(problem: &DecodeProblem, tensors: &Tensors) -> Result<Decode, ContenderError> {
    let shape = &problem.shape;
    let dtype = dtype(problem.dtype())
        .ok_or_else(|| ContenderError::new(format!("no {} kernel", problem.dtype())))?;
    Ok(Decode {
        q: tensors.address("q")?,
        k_pages: tensors.address("k_pages")?,
        v_pages: tensors.address("v_pages")?,
        out: tensors.address("out")?,
        page_indptr: tensors.address("page_indptr")?,
        page_indices: tensors.address("page_indices")?,
        last_page_lengths: tensors.address("last_page_len")?,
        q_len: narrow(shape.q_len)?,
        heads: narrow(shape.heads)?,
        kv_heads: narrow(shape.kv_heads)?,
        head_dim: narrow(shape.head_dim)?,
        page_size: narrow(shape.page_size)?,
        heads_first: shape.layout == KvLayout::Hnd,
        dtype,
        fp8_cache: shape.kv_type == KvType::Fp8,
        // As in the library's own wrapper.
        scale: problem.scale * problem.k_scale,
        v_scale: problem.v_scale,
    })
}
