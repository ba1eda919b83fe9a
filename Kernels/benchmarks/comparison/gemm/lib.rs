//! Contenders for matrix products, dense and grouped.

mod cpu;
#[cfg(feature = "cuda")]
mod cublaslt;
#[cfg(feature = "cuda")]
mod deep_gemm;
mod onednn;

use contender::{Contenders, DeviceKind};
#[cfg(feature = "cuda")]
use gemm_ours as ours;
use shared::on_cuda;
use workloads::GemmProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<GemmProblem> {
    match device {
        DeviceKind::Cpu => shared::cpu::after_ours(cpu::contenders(), onednn::contenders()),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            deep_gemm::contenders,
            cublaslt::contenders
        ],
    }
}
