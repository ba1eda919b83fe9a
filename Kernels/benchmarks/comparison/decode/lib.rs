//! Contenders for decode attention over a paged cache.

mod cpu;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;
#[cfg(feature = "cuda")]
mod xqa;

use contender::{Contenders, DeviceKind};
#[cfg(feature = "cuda")]
use decode_ours as ours;
use shared::on_cuda;
use workloads::DecodeProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<DecodeProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            flashinfer::contenders,
            xqa::contenders,
            cudnn::contenders,
            trtllm_gen::contenders
        ],
    }
}
