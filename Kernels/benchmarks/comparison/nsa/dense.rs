//! Dense causal attention: ours and FlashAttention of bench_prefill, which load no library at run time.

use contender::{Contenders, DeviceKind};
use prefill_contenders::cpu;
#[cfg(feature = "cuda")]
use prefill_contenders::{flash_attention, ours};
use shared::on_cuda;
use workloads::PrefillProblem;

pub fn contenders(device: DeviceKind) -> Contenders<PrefillProblem> {
    let mut all: Contenders<_> = match device {
        DeviceKind::Cpu => cpu::contenders(),
        DeviceKind::Cuda | DeviceKind::Ptx => {
            on_cuda![ours::contenders, flash_attention::contenders]
        }
    };
    // Our portable kernel has its row in bench_prefill.
    all.retain(|contender| contender.identity().name != "ours_portable");
    all
}
