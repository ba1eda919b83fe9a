//! Contenders for matrix products, dense and grouped.

mod cpu;
#[cfg(feature = "cuda")]
mod cublaslt;
#[cfg(feature = "cuda")]
mod deep_gemm;
#[cfg(feature = "cuda")]
mod ours;

use contender::{Contenders, DeviceKind};
use workloads::GemmProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<GemmProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda => on_cuda().into_iter().flatten().collect(),
    }
}

/// The first baseline here is the default to compare with.
fn on_cuda() -> Vec<Contenders<GemmProblem>> {
    vec![
        #[cfg(feature = "cuda")]
        ours::contenders(),
        #[cfg(feature = "cuda")]
        deep_gemm::contenders(),
        #[cfg(feature = "cuda")]
        cublaslt::contenders(),
    ]
}
