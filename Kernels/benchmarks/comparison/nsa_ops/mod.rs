//! Contenders for native sparse attention, and for dense attention on the same shapes.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod dense;
#[cfg(feature = "cuda")]
mod fla;
mod problem;

use contender::{Contender, DeviceKind};
use workloads::NsaProblem;

pub use problem::SparseOrDense;

type Contenders = Vec<Box<dyn Contender<SparseOrDense>>>;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders {
    problem::join(sparse(device), dense::contenders(device))
}

fn sparse(device: DeviceKind) -> Vec<Box<dyn Contender<NsaProblem>>> {
    match device {
        DeviceKind::Cpu => crate::cpu_contender::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => cuda::contenders(),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
