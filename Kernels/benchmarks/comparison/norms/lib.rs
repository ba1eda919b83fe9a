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
mod onednn;
#[cfg(feature = "cuda")]
mod quack;
#[cfg(feature = "cuda")]
mod transformer_engine;

use contender::{Contenders, DeviceKind};
#[cfg(feature = "cuda")]
use norms_ours as ours;
use shared::on_cuda;
use workloads::NormProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<NormProblem> {
    match device {
        DeviceKind::Cpu => shared::cpu::after_ours(cpu::contenders(), onednn::contenders()),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            quack::contenders,
            liger::contenders,
            flashinfer::contenders,
            cudnn::contenders,
            transformer_engine::contenders
        ],
    }
}
