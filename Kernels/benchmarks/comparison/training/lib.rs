//! Contenders for the training primitives.

mod cpu;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod liger;
#[cfg(feature = "cuda")]
mod ours;

use contender::{Contenders, DeviceKind};
use workloads::TrainingProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<TrainingProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda => on_cuda().into_iter().flatten().collect(),
    }
}

/// The first baseline here is the default to compare with.
fn on_cuda() -> Vec<Contenders<TrainingProblem>> {
    vec![
        #[cfg(feature = "cuda")]
        ours::contenders(),
        #[cfg(feature = "cuda")]
        liger::contenders(),
        #[cfg(feature = "cuda")]
        flashinfer::contenders(),
        #[cfg(feature = "cuda")]
        ours::reference(),
    ]
}
