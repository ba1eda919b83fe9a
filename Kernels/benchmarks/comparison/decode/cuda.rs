//! Our kernels.

#[path = "../paged_cuda.rs"]
mod paged_cuda;

use ::decode::{Dtype, Problem, Tensors};
use contender::{Buffer, Contender, ContenderError};
use numeric::DType;
use workloads::{decode_tensor as at, DecodeProblem, KvLayout, KvType};

use paged_cuda::{Enqueue, Paged, Planned};

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    paged_cuda::contenders()
}

fn dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::F16 => Some(Dtype::F16),
        DType::Bf16 => Some(Dtype::Bf16),
        _ => None,
    }
}

fn describe(problem: &DecodeProblem) -> Result<Problem, ContenderError> {
    let shape = &problem.shape;
    Ok(Problem {
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        page_size: shape.page_size,
        pool_pages: problem.table.pool_pages,
        head_major: shape.layout == KvLayout::Hnd,
        dtype: dtype(problem.dtype).ok_or_else(|| ContenderError::new("unsupported type"))?,
        fp8_cache: shape.kv_type == KvType::Fp8,
        scale: problem.scale * problem.k_scale,
        value_scale: problem.v_scale,
    })
}

fn tensors(buffers: &[Buffer]) -> Tensors {
    let address = |tensor: usize| buffers[tensor].address;
    Tensors {
        q: address(at::Q),
        k_pages: address(at::K_PAGES),
        v_pages: address(at::V_PAGES),
        page_indptr: address(at::PAGE_INDPTR),
        page_indices: address(at::PAGE_INDICES),
        kv_len: address(at::KV_LEN),
        out: address(at::OUT),
    }
}

impl Paged for DecodeProblem {
    const TIMED_REGION: &'static str = "one kernel, which also merges the parts of split \
         sequences; not the plan, which the host makes from the lengths";

    fn unsupported(&self) -> Option<String> {
        let shape = &self.shape;
        if dtype(self.dtype).is_none() {
            Some(format!("no {}; f16 and bf16 only", self.dtype))
        } else if !matches!(shape.head_dim, 64 | 128) {
            Some(format!("head_dim {}; 64 and 128 only", shape.head_dim))
        } else if !shape.page_size.is_power_of_two() || shape.page_size > 1024 {
            let page_size = shape.page_size;
            Some(format!("pages of {page_size}; powers of two up to 1024"))
        } else if shape.q_len > 16 {
            Some(format!("{} new tokens; at most 16", shape.q_len))
        } else {
            None
        }
    }

    fn plan(&self, buffers: &[Buffer]) -> Result<Planned, ContenderError> {
        let (table, problem) = (&self.table, describe(self)?);
        let planned = ::decode::plan(
            &problem,
            &tensors(buffers),
            &table.indptr,
            &table.indices,
            &table.lengths,
        );
        let planned = planned.map_err(ContenderError::new)?;
        Ok(Planned {
            description: planned.description(),
            workspace_bytes: planned.workspace_bytes(),
            enqueue: Box::new(move |stream| planned.enqueue(stream).map_err(ContenderError::new)),
        })
    }

    fn plain(&self, buffers: &[Buffer]) -> Result<Enqueue, ContenderError> {
        let (table, problem) = (&self.table, describe(self)?);
        ::decode::check_table(&problem, &table.indptr, &table.indices, &table.lengths)
            .map_err(ContenderError::new)?;
        let tensors = tensors(buffers);
        Ok(Box::new(move |stream| {
            ::decode::enqueue_plain(&problem, &tensors, stream).map_err(ContenderError::new)
        }))
    }
}
