//! Dense causal attention: the contenders of bench_prefill that need no library at run time.

use contender::{Contender, DeviceKind};
use workloads::PrefillProblem;

use crate::cpu_contender;

#[path = "../prefill/cpu.rs"]
mod cpu;
#[cfg(feature = "cuda")]
#[path = "../prefill/cuda.rs"]
mod cuda;
#[cfg(feature = "cuda")]
#[path = "../prefill/flash_attention.rs"]
mod flash_attention;

type Contenders = Vec<Box<dyn Contender<PrefillProblem>>>;

pub fn contenders(device: DeviceKind) -> Contenders {
    match device {
        DeviceKind::Cpu => cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => {
            let all = cuda::contenders()
                .into_iter()
                .chain(flash_attention::contenders());
            // bench_prefill has a row for our portable kernel.
            all.filter(|contender| contender.identity().name != "ours_portable")
                .collect()
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    }
}
