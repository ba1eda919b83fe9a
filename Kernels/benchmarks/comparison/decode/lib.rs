//! Contenders for decode attention over a paged cache.

mod cpu;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod ours;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;

use contender::{Contenders, DeviceKind};
use workloads::DecodeProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<DecodeProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda => on_cuda().into_iter().flatten().collect(),
    }
}

/// The first baseline here is the default to compare with.
fn on_cuda() -> Vec<Contenders<DecodeProblem>> {
    vec![
        #[cfg(feature = "cuda")]
        ours::contenders(),
        #[cfg(feature = "cuda")]
        flashinfer::contenders(),
        #[cfg(feature = "cuda")]
        cudnn::contenders(),
        #[cfg(feature = "cuda")]
        trtllm_gen::contenders(),
    ]
}
