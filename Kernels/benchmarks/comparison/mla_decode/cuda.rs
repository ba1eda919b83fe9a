//! CUDA contenders: our kernel, and the plain one that serves as the gate's full reference.

use std::time::Instant;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use mla::{Dtype, Planned, Problem, Tensors, UniquePtr};
use numeric::DType;
use serde_json::Value;
use workloads::{mla_tensor as at, MlaDecodeProblem};

struct Ours {
    identity: Identity,
}

struct Plain {
    identity: Identity,
}

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    let identity = |name: &str, kind, timed_region: &str| Identity {
        name: name.to_owned(),
        kind,
        version: "in tree".to_owned(),
        artifact_sha256: None,
        timed_region: timed_region.to_owned(),
    };
    vec![
        Box::new(Ours {
            identity: identity(
                "ours",
                Kind::Own,
                "the kernel, and the one that merges the parts of split sequences; not the plan, \
                 which the host makes from the lengths",
            ),
        }),
        Box::new(Plain {
            identity: identity("plain_fp32", Kind::Reference, "one kernel"),
        }),
    ]
}

/// Whether the kernels serve the shape; `mla::plan` has the last word.
fn supports(problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
    let shape = &problem.shape;
    let no = |reason: String| Support::No(reason);
    if device.kind != DeviceKind::Cuda {
        no("runs on CUDA only".to_owned())
    } else if dtype(problem.dtype).is_none() {
        no(format!("no {}; f16 and bf16 only", problem.dtype))
    } else if !shape.page_size.is_power_of_two() || shape.page_size > 1024 {
        no(format!(
            "pages of {}; powers of two up to 1024",
            shape.page_size
        ))
    } else if shape.q_len > 16 || shape.heads > 256 {
        let (q_len, heads) = (shape.q_len, shape.heads);
        no(format!(
            "{q_len} new tokens of {heads} heads; at most 16 of 256"
        ))
    } else {
        Support::Yes
    }
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

impl Contender<MlaDecodeProblem> for Ours {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
        supports(problem, device)
    }

    fn bind(
        &self,
        problem: &MlaDecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let (table, description) = (&problem.table, describe(problem)?);
        let started = Instant::now();
        let planned = mla::plan(
            &description,
            &tensors(buffers),
            &table.indptr,
            &table.indices,
            &table.lengths,
        )
        .map_err(ContenderError::new)?;
        let plan_us = started.elapsed().as_secs_f64() * 1e6;
        Ok(Box::new(BoundOurs { planned, plan_us }))
    }
}

struct BoundOurs {
    planned: UniquePtr<Planned>,
    plan_us: f64,
}

impl Bound for BoundOurs {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.planned.enqueue(stream).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        Facts::from([
            ("plan".to_owned(), Value::from(self.planned.description())),
            // With the allocation of its memory, which a server does once.
            ("plan_us".to_owned(), Value::from(self.plan_us.round())),
            (
                "workspace_bytes".to_owned(),
                Value::from(self.planned.workspace_bytes()),
            ),
        ])
    }
}

impl Contender<MlaDecodeProblem> for Plain {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
        supports(problem, device)
    }

    fn bind(
        &self,
        problem: &MlaDecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let (table, problem) = (&problem.table, describe(problem)?);
        mla::check_table(&problem, &table.indptr, &table.indices, &table.lengths)
            .map_err(ContenderError::new)?;
        Ok(Box::new(BoundPlain {
            problem,
            tensors: tensors(buffers),
        }))
    }
}

struct BoundPlain {
    problem: Problem,
    tensors: Tensors,
}

impl Bound for BoundPlain {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        mla::enqueue_plain(&self.problem, &self.tensors, stream).map_err(ContenderError::new)
    }
}
