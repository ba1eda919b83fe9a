//! Our kernels.

#[path = "../paged_cuda.rs"]
mod paged_cuda;

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Kind, Support};
use mla::{Dtype, KernelChoice, Problem, Tensors};
use numeric::DType;
use workloads::{mla_tensor as at, MlaDecodeProblem};

use paged_cuda::{Enqueue, Paged, Planned};

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    let mut all = paged_cuda::contenders();
    let identity = Identity::in_tree(
        "ours_portable",
        Kind::Own,
        <MlaDecodeProblem as Paged>::TIMED_REGION,
    );
    all.push(Box::new(Portable(identity)));
    all
}

/// The kernel that every architecture has, where `ours` is another.
struct Portable(Identity);

impl Contender<MlaDecodeProblem> for Portable {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn supports(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
        let support = paged_cuda::supports(problem, device);
        if !matches!(support, Support::Yes) {
            return support;
        }
        let has_better = describe(problem)
            .and_then(|problem| mla::has_better(&problem).map_err(ContenderError::new));
        match has_better {
            Ok(true) => Support::Yes,
            Ok(false) => Support::No("the same kernel as 'ours' here".to_owned()),
            Err(error) => Support::No(error.to_string()),
        }
    }

    fn bind(
        &self,
        problem: &MlaDecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        paged_cuda::bind_planned(|| plan(problem, KernelChoice::Portable, buffers))
    }
}

fn plan(
    problem: &MlaDecodeProblem,
    choice: KernelChoice,
    buffers: &[Buffer],
) -> Result<Planned, ContenderError> {
    let (table, description) = (&problem.table, describe(problem)?);
    let planned = mla::plan(
        &description,
        choice,
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

fn dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::F16 => Some(Dtype::F16),
        DType::Bf16 => Some(Dtype::Bf16),
        _ => None,
    }
}

fn describe(problem: &MlaDecodeProblem) -> Result<Problem, ContenderError> {
    let shape = &problem.shape;
    Ok(Problem {
        batch: shape.batch(),
        q_len: shape.q_len,
        heads: shape.heads,
        page_size: shape.page_size,
        pool_pages: problem.table.pool_pages,
        dtype: dtype(problem.dtype).ok_or_else(|| ContenderError::new("unsupported type"))?,
        scale: problem.scale,
    })
}

fn tensors(buffers: &[Buffer]) -> Tensors {
    let address = |tensor: usize| buffers[tensor].address;
    Tensors {
        q: address(at::Q),
        cache: address(at::CACHE),
        page_indptr: address(at::PAGE_INDPTR),
        page_indices: address(at::PAGE_INDICES),
        kv_len: address(at::KV_LEN),
        out: address(at::OUT),
    }
}

impl Paged for MlaDecodeProblem {
    const TIMED_REGION: &'static str = "the kernel, and the one that merges the parts of split \
         sequences; not the plan, which the host makes from the lengths";

    fn unsupported(&self) -> Option<String> {
        let shape = &self.shape;
        if dtype(self.dtype).is_none() {
            Some(format!("no {}; f16 and bf16 only", self.dtype))
        } else if !shape.page_size.is_power_of_two() || shape.page_size > 1024 {
            let page_size = shape.page_size;
            Some(format!("pages of {page_size}; powers of two up to 1024"))
        } else if shape.q_len > 16 || shape.heads > 256 {
            let (q_len, heads) = (shape.q_len, shape.heads);
            Some(format!(
                "{q_len} new tokens of {heads} heads; at most 16 of 256"
            ))
        } else {
            None
        }
    }

    fn plan(&self, buffers: &[Buffer]) -> Result<Planned, ContenderError> {
        plan(self, KernelChoice::Best, buffers)
    }

    fn plain(&self, buffers: &[Buffer]) -> Result<Enqueue, ContenderError> {
        let (table, problem) = (&self.table, describe(self)?);
        mla::check_table(&problem, &table.indptr, &table.indices, &table.lengths)
            .map_err(ContenderError::new)?;
        let tensors = tensors(buffers);
        Ok(Box::new(move |stream| {
            mla::enqueue_plain(&problem, &tensors, stream).map_err(ContenderError::new)
        }))
    }
}
