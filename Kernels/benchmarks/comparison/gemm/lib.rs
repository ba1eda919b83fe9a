//! Contenders for matrix products, dense and grouped.

mod cpu;
#[cfg(feature = "cuda")]
mod cublaslt;
#[cfg(feature = "cuda")]
mod deep_gemm;
#[cfg(feature = "cuda")]
mod ours;

use contender::{Contenders, DeviceKind};
use shared::on_cuda;
use workloads::GemmProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<GemmProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            deep_gemm::contenders,
            cublaslt::contenders
        ],
    }
}
