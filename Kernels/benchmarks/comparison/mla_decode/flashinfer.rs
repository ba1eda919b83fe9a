//! FlashInfer's decode with latent attention: its FA2 kernel on every device, its Hopper kernel on
//! sm_90a.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Support,
};
use flashinfer::{Dtype, MlaDecode, MlaKernel};
use workloads::{mla_tensor, MlaDecodeProblem};

use super::planned::{self, dtype, narrow, BoundPlan};

struct FlashInferMla {
    identity: Identity,
    kernel: MlaKernel,
}

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    let contender = |name, kernel| -> Box<dyn Contender<_>> {
        Box::new(FlashInferMla {
            identity: planned::identity(
                name,
                "one kernel, which merges what it splits; planned in bind",
            ),
            kernel,
        })
    };
    vec![
        contender("flashinfer_mla_fa2", MlaKernel::Fa2),
        contender("flashinfer_mla_hopper", MlaKernel::Hopper),
    ]
}

impl FlashInferMla {
    fn unsupported(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
        let shape = &problem.shape;
        if device.kind != DeviceKind::Cuda {
            return Some("runs on CUDA only".to_owned());
        }
        if self.kernel == MlaKernel::Hopper && device.arch != "sm_90a" {
            return Some(format!("for sm_90a; this is {}", device.arch));
        }
        if dtype(problem.dtype) != Some(Dtype::Bf16) || !flashinfer::has_mla_decode(self.kernel) {
            return Some(format!("no {} kernel in this build", problem.dtype));
        }
        if shape.q_len > 1 && shape.lengths.iter().any(|&length| length < shape.q_len) {
            return Some("a sequence is shorter than its new tokens".to_owned());
        }
        None
    }
}

impl Contender<MlaDecodeProblem> for FlashInferMla {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
        match self.unsupported(problem, device) {
            Some(reason) => Support::No(reason),
            None => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &MlaDecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let table = &problem.table;
        table.validate().map_err(ContenderError::new)?;
        let call = call(problem, |tensor| buffers[tensor].address)?;
        let planned =
            flashinfer::plan_mla_decode(self.kernel, &call, &table.indptr, &table.lengths)
                .map_err(ContenderError::new)?;
        Ok(Box::new(BoundPlan(planned)))
    }
}

/// The problem as the library takes it; `at` has the addresses of its tensors.
pub fn call(
    problem: &MlaDecodeProblem,
    at: impl Fn(usize) -> usize,
) -> Result<MlaDecode, ContenderError> {
    let shape = &problem.shape;
    Ok(MlaDecode {
        q: at(mla_tensor::Q),
        cache: at(mla_tensor::CACHE),
        out: at(mla_tensor::OUT),
        page_indices: at(mla_tensor::PAGE_INDICES),
        q_len: narrow(shape.q_len)?,
        heads: narrow(shape.heads)?,
        page_size: narrow(shape.page_size)?,
        scale: problem.scale,
    })
}
