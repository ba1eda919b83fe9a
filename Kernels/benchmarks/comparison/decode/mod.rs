//! Contenders for decode attention over a paged cache.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
#[path = "../flashinfer_pages.rs"]
mod pages;
#[cfg(feature = "cuda")]
#[path = "../flashinfer_planned.rs"]
mod planned;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;
#[cfg(feature = "cuda")]
#[path = "../trtllm_gen_shared.rs"]
mod trtllm_gen_shared;

use contender::{Contender, DeviceKind};
use workloads::DecodeProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Vec<Box<dyn Contender<DecodeProblem>>> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => cuda::contenders()
            .into_iter()
            .chain(flashinfer::contenders())
            .chain(cudnn::contenders())
            .chain(trtllm_gen::contenders())
            .collect(),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
