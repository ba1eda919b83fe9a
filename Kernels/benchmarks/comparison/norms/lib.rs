//! Contenders for the row operations.

mod cpu;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod gradient_sums;
#[cfg(feature = "cuda")]
pub mod liger;
#[cfg(feature = "cuda")]
mod ours;
#[cfg(feature = "cuda")]
mod quack;

use contender::{Contenders, DeviceKind};
use workloads::NormProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<NormProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda => on_cuda().into_iter().flatten().collect(),
    }
}

/// The first baseline here is the default to compare with.
fn on_cuda() -> Vec<Contenders<NormProblem>> {
    vec![
        #[cfg(feature = "cuda")]
        ours::contenders(),
        #[cfg(feature = "cuda")]
        quack::contenders(),
        #[cfg(feature = "cuda")]
        liger::contenders(),
        #[cfg(feature = "cuda")]
        flashinfer::contenders(),
        #[cfg(feature = "cuda")]
        cudnn::contenders(),
    ]
}
