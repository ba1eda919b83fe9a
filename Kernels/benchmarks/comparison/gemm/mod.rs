//! Contenders for matrix products, dense and grouped.

mod cpu;
#[cfg(feature = "cuda")]
mod cublaslt_baseline;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod deep_gemm_baseline;

use contender::{Contender, DeviceKind};
use workloads::GemmProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Vec<Box<dyn Contender<GemmProblem>>> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => {
            let mut all = cuda::contenders();
            all.push(deep_gemm_baseline::contender());
            all.push(cublaslt_baseline::contender());
            all.push(cublaslt_baseline::first_contender());
            all
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
