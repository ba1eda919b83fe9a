//! FlashInfer's decode over paged caches: its kernel on CUDA cores, and its prefill kernel over
//! pages, which it recommends where heads share a cache.

use contender::{Buffer, Contender, ContenderError, DeviceInfo};
use flashinfer::{Decode, DecodeKernel};
use workloads::{decode_tensor, DecodeProblem, KvLayout, KvType};

use super::planned::{self, dtype, narrow, Kernel, Plan};

/// Heads that may share a head of the cache on CUDA cores.
const GROUPS: [usize; 5] = [1, 2, 3, 4, 8];

/// Queries times heads that may share a head of the cache on tensor cores: the tiles that are built.
const ROWS: usize = 64;
const FP8_ROWS: usize = 16;

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    let region = "the attention kernel, and the merge where the plan splits KV; planned in bind";
    let contender = |name, kernel| planned::contender(planned::identity(name, region), kernel);
    vec![
        contender("flashinfer_decode_tc", DecodeKernel::TensorCores),
        contender("flashinfer_decode", DecodeKernel::CudaCores),
    ]
}

impl Kernel<DecodeProblem> for DecodeKernel {
    fn unsupported(&self, problem: &DecodeProblem, _device: &DeviceInfo) -> Option<String> {
        let shape = &problem.shape;
        let on_cuda_cores = *self == DecodeKernel::CudaCores;
        let fp8 = shape.kv_type == KvType::Fp8;
        let built = dtype(problem.dtype)
            .is_some_and(|dtype| flashinfer::has_decode(*self, dtype, shape.head_dim as u32, fp8));
        if !built {
            return Some(format!(
                "no {} kernel with a head size of {}{} in this build",
                problem.dtype,
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
                "{rows} rows of queries share a head of the cache; this build has tiles of {most}"
            ));
        }
        if fp8 && shape.q_len > 1 {
            return Some(format!(
                "{} new tokens over FP8; this build has one",
                shape.q_len
            ));
        }
        if on_cuda_cores && shape.q_len != 1 {
            return Some(format!("{} new tokens; one only", shape.q_len));
        }
        if on_cuda_cores && !GROUPS.contains(&shape.group()) {
            return Some(format!(
                "{} heads share one of the cache; it has {GROUPS:?}",
                shape.group()
            ));
        }
        if shape.q_len > 1 {
            return problem.table.shorter_than(shape.q_len);
        }
        None
    }

    fn plan(&self, problem: &DecodeProblem, buffers: &[Buffer]) -> Plan {
        let call = call(problem, |tensor| buffers[tensor].address)?;
        problem.table.validate().map_err(ContenderError::new)?;
        flashinfer::plan_decode(*self, &call, &problem.table.indptr).map_err(ContenderError::new)
    }
}

/// The problem as the library takes it; `at` has the addresses of its tensors.
pub fn call(
    problem: &DecodeProblem,
    at: impl Fn(usize) -> usize,
) -> Result<Decode, ContenderError> {
    let shape = &problem.shape;
    let dtype = dtype(problem.dtype)
        .ok_or_else(|| ContenderError::new(format!("no {} kernel", problem.dtype)))?;
    Ok(Decode {
        q: at(decode_tensor::Q),
        k_pages: at(decode_tensor::K_PAGES),
        v_pages: at(decode_tensor::V_PAGES),
        out: at(decode_tensor::OUT),
        page_indptr: at(decode_tensor::PAGE_INDPTR),
        page_indices: at(decode_tensor::PAGE_INDICES),
        last_page_lengths: at(decode_tensor::LAST_PAGE_LEN),
        q_len: narrow(shape.q_len)?,
        heads: narrow(shape.heads)?,
        kv_heads: narrow(shape.kv_heads)?,
        head_dim: narrow(shape.head_dim)?,
        page_size: narrow(shape.page_size)?,
        heads_first: shape.layout == KvLayout::Hnd,
        dtype,
        fp8_cache: shape.kv_type == KvType::Fp8,
        // As the library's own wrapper does.
        scale: problem.scale * problem.k_scale,
        v_scale: problem.v_scale,
    })
}
