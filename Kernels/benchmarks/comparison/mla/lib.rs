//! Contenders for multi-head latent attention decode.

mod cpu;
#[cfg(feature = "cuda")]
mod cutlass;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;

use contender::{Contenders, DeviceKind};
#[cfg(feature = "cuda")]
use flash_mla_contender as flash_mla;
#[cfg(feature = "cuda")]
use mla_ours as ours;
use shared::on_cuda;
use workloads::MlaDecodeProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<MlaDecodeProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            flashinfer::contenders,
            flash_mla::contenders,
            cutlass::contenders,
            trtllm_gen::contenders
        ],
    }
}
