//! FlashInfer's decode with latent attention: its FA2 kernel on every device, its Hopper kernel on
//! sm_90a.

use contender::{Buffer, Contender, ContenderError, DeviceInfo};
use flashinfer::{Dtype, MlaDecode, MlaKernel};
use workloads::{mla_tensor, MlaDecodeProblem};

use super::planned::{self, dtype, narrow, Kernel, Plan};

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    let region = "one kernel, which merges what it splits; planned in bind";
    let contender = |name, kernel| planned::contender(planned::identity(name, region), kernel);
    vec![
        contender("flashinfer_mla_fa2", MlaKernel::Fa2),
        contender("flashinfer_mla_hopper", MlaKernel::Hopper),
    ]
}

impl Kernel<MlaDecodeProblem> for MlaKernel {
    fn unsupported(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
        let shape = &problem.shape;
        if *self == MlaKernel::Hopper && device.arch != "sm_90a" {
            return Some(format!("for sm_90a; this is {}", device.arch));
        }
        if dtype(problem.dtype) != Some(Dtype::Bf16) || !flashinfer::has_mla_decode(*self) {
            return Some(format!("no {} kernel in this build", problem.dtype));
        }
        if shape.q_len > 1 {
            return problem.table.shorter_than(shape.q_len);
        }
        None
    }

    fn plan(&self, problem: &MlaDecodeProblem, buffers: &[Buffer]) -> Plan {
        let table = &problem.table;
        table.validate().map_err(ContenderError::new)?;
        let call = call(problem, |tensor| buffers[tensor].address)?;
        flashinfer::plan_mla_decode(*self, &call, &table.indptr, &table.lengths)
            .map_err(ContenderError::new)
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
