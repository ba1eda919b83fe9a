//! Contenders for decode with multi-head latent attention.

mod cpu;
#[cfg(feature = "cuda")]
mod cutlass;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod ours;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;

use contender::{Contenders, DeviceKind};
use workloads::MlaDecodeProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<MlaDecodeProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda => on_cuda().into_iter().flatten().collect(),
    }
}

/// The first baseline here is the default to compare with.
fn on_cuda() -> Vec<Contenders<MlaDecodeProblem>> {
    vec![
        #[cfg(feature = "cuda")]
        ours::contenders(),
        #[cfg(feature = "cuda")]
        flashinfer::contenders(),
        #[cfg(feature = "cuda")]
        cutlass::contenders(),
        #[cfg(feature = "cuda")]
        trtllm_gen::contenders(),
    ]
}
