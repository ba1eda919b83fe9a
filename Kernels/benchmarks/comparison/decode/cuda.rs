//! CUDA contenders: our kernel, and the plain one that serves as the gate's full reference.

use std::time::Instant;

use ::decode::{Dtype, Planned, Problem, Tensors, UniquePtr};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use numeric::DType;
use serde_json::Value;
use workloads::{decode_tensor as at, DecodeProblem, KvLayout, KvType};

struct Ours {
    identity: Identity,
}

struct Plain {
    identity: Identity,
}

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
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
                "one kernel, which also merges the parts of split sequences; not the plan, which \
                 the host makes from the lengths",
            ),
        }),
        Box::new(Plain {
            identity: identity("plain_fp32", Kind::Reference, "one kernel"),
        }),
    ]
}

/// Whether the kernels serve the shape; `decode::plan` has the last word.
fn supports(problem: &DecodeProblem, device: &DeviceInfo) -> Support {
    let shape = &problem.shape;
    let no = |reason: String| Support::No(reason);
    if device.kind != DeviceKind::Cuda {
        no("runs on CUDA only".to_owned())
    } else if dtype(problem.dtype).is_none() {
        no(format!("no {}; f16 and bf16 only", problem.dtype))
    } else if !matches!(shape.head_dim, 64 | 128) {
        no(format!("head_dim {}; 64 and 128 only", shape.head_dim))
    } else if !shape.page_size.is_power_of_two() || shape.page_size > 1024 {
        no(format!(
            "pages of {}; powers of two up to 1024",
            shape.page_size
        ))
    } else if shape.q_len > 16 {
        no(format!("{} new tokens; at most 16", shape.q_len))
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

impl Contender<DecodeProblem> for Ours {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &DecodeProblem, device: &DeviceInfo) -> Support {
        supports(problem, device)
    }

    fn bind(
        &self,
        problem: &DecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let (table, description) = (&problem.table, describe(problem)?);
        let started = Instant::now();
        let planned = ::decode::plan(
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

impl Contender<DecodeProblem> for Plain {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &DecodeProblem, device: &DeviceInfo) -> Support {
        supports(problem, device)
    }

    fn bind(
        &self,
        problem: &DecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let (table, problem) = (&problem.table, describe(problem)?);
        ::decode::check_table(&problem, &table.indptr, &table.indices, &table.lengths)
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
        ::decode::enqueue_plain(&self.problem, &self.tensors, stream).map_err(ContenderError::new)
    }
}
