//! Contenders for prefill attention.

pub mod cpu;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
pub mod trtllm_gen;

use contender::{Contenders, DeviceKind};
#[cfg(feature = "cuda")]
pub use flash_attention_3_contender as flash_attention_3;
#[cfg(feature = "cuda")]
pub use flash_attention_contender as flash_attention;
#[cfg(feature = "cuda")]
pub use prefill_ours as ours;
use shared::on_cuda;
use workloads::PrefillProblem;

/// All contenders on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Contenders<PrefillProblem> {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        // The first baseline is the default to compare with.
        DeviceKind::Cuda | DeviceKind::Ptx => on_cuda![
            ours::contenders,
            flashinfer::contenders,
            trtllm_gen::contenders,
            cudnn::contenders,
            flash_attention_3::contenders,
            flash_attention::contenders
        ],
    }
}
