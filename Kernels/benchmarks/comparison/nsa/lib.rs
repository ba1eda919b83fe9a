//! Contenders for native sparse attention, and for dense attention on the same shapes.

mod cpu;
mod dense;
mod problem;

use contender::{Contenders, DeviceKind};
#[cfg(feature = "cuda")]
use fla_contender as fla;
#[cfg(feature = "cuda")]
use nsa_ours as ours;
use shared::on_cuda;
use workloads::NsaProblem;

pub use problem::SparseOrDense;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<SparseOrDense> {
    problem::join(sparse(device), dense::contenders(device))
}

fn sparse(device: DeviceKind) -> Contenders<NsaProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => {
            on_cuda![ours::contenders, fla::contenders, ours::reference]
        }
    }
}
