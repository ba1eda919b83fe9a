//! Contenders for native sparse attention.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod fla;

use contender::{Contender, DeviceKind};
use workloads::NsaProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Vec<Box<dyn Contender<NsaProblem>>> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => cuda::contenders(),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
