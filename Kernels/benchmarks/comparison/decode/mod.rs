//! Contenders for decode attention over a paged cache.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod flashinfer;

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
            .collect(),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
