//! Contenders for the training primitives.

mod cpu;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod liger;
mod onednn;
#[cfg(feature = "cuda")]
mod transformer_engine;

use contender::{Contenders, DeviceKind};
use shared::on_cuda;
#[cfg(feature = "cuda")]
use training_ours as ours;
use workloads::TrainingProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<TrainingProblem> {
    match device {
        DeviceKind::Cpu => shared::cpu::after_ours(cpu::contenders(), onednn::contenders()),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            liger::contenders,
            flashinfer::contenders,
            transformer_engine::contenders,
            ours::reference
        ],
    }
}
