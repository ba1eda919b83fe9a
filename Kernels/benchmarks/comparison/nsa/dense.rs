//! Dense causal attention: the contenders of bench_prefill that need no library at run time.

use contender::{Contenders, DeviceKind};
use workloads::PrefillProblem;

pub fn contenders(device: DeviceKind) -> Contenders<PrefillProblem> {
    match device {
        DeviceKind::Cpu => prefill_contenders::cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => {
            let mut all = prefill_contenders::ours::contenders();
            // bench_prefill has a row for our portable kernel.
            all.retain(|contender| contender.identity().name != "ours_portable");
            all.extend(prefill_contenders::flash_attention::contenders());
            all
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
