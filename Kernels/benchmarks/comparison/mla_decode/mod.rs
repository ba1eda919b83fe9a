//! Contenders for decode with multi-head latent attention.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cutlass;
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
use workloads::MlaDecodeProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => cuda::contenders()
            .into_iter()
            .chain(flashinfer::contenders())
            .chain(cutlass::contenders())
            .chain(trtllm_gen::contenders())
            .collect(),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
