//! Contenders for the training primitives.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod liger;

use contender::{Contender, DeviceKind};
use workloads::TrainingProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Vec<Box<dyn Contender<TrainingProblem>>> {
    match device {
        DeviceKind::Cpu => crate::cpu_contender::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => cuda::contenders(),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
