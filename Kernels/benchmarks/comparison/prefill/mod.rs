//! Contenders for prefill attention. A baseline adds its module and its line in [`cuda_sources`].

mod cpu;
#[path = "../cpu_contender.rs"]
mod cpu_contender;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flash_attention;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
#[path = "../flashinfer_planned.rs"]
mod planned;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;
#[cfg(feature = "cuda")]
#[path = "../trtllm_gen_shared.rs"]
mod trtllm_gen_shared;

use contender::{Contender, DeviceKind};
use workloads::PrefillProblem;

type Contenders = Vec<Box<dyn Contender<PrefillProblem>>>;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda => cuda_sources().iter().flat_map(|source| source()).collect(),
    }
}

/// Who brings contenders for CUDA. The first baseline here is the default to compare with.
fn cuda_sources() -> Vec<fn() -> Contenders> {
    vec![
        #[cfg(feature = "cuda")]
        cuda::contenders,
        #[cfg(feature = "cuda")]
        flashinfer::contenders,
        #[cfg(feature = "cuda")]
        trtllm_gen::contenders,
        #[cfg(feature = "cuda")]
        cudnn::contenders,
        #[cfg(feature = "cuda")]
        flash_attention::contenders,
    ]
}
