//! Contenders for the row operations.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cudnn;
#[cfg(feature = "cuda")]
mod flashinfer;
#[cfg(feature = "cuda")]
mod gradient_sums;
#[cfg(feature = "cuda")]
mod liger;
#[cfg(feature = "planted")]
mod planted;
#[cfg(feature = "cuda")]
mod quack;

use contender::{Contender, DeviceKind};
use workloads::NormProblem;

/// Everybody who competes on a kind of device, ours first.
pub fn contenders(device: DeviceKind) -> Vec<Box<dyn Contender<NormProblem>>> {
    let all = || match device {
        DeviceKind::Cpu => cpu::contenders(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => {
            let mut contenders = cuda::contenders();
            contenders.extend(quack::contenders());
            contenders.push(liger::contender());
            contenders.push(flashinfer::contender());
            contenders.push(cudnn::contender());
            contenders
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Vec::new(),
    };
    #[cfg(feature = "planted")]
    {
        let first = all().into_iter().next();
        let planted = first.map(|honest| Box::new(planted::Planted::new(honest)) as Box<_>);
        all().into_iter().chain(planted).collect()
    }
    #[cfg(not(feature = "planted"))]
    all()
}
