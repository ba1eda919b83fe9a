//! What FlashInfer's attention contenders share: a plan made in `bind`, enqueued any number of times.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use flashinfer::{Dtype, Planned, UniquePtr};
use numeric::DType;

pub fn identity(name: &str, timed_region: &str) -> Identity {
    Identity {
        name: name.to_owned(),
        kind: Kind::Baseline,
        version: flashinfer::VERSION.to_owned(),
        artifact_sha256: Some(flashinfer::WHEEL_SHA256.to_owned()),
        libraries: Vec::new(),
        timed_region: timed_region.to_owned(),
    }
}

/// The library's name of a type, where a kernel here has it.
pub fn dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::F16 => Some(Dtype::F16),
        DType::Bf16 => Some(Dtype::Bf16),
        _ => None,
    }
}

/// A number that the library takes as 32 bits.
pub fn narrow(number: usize) -> Result<u32, ContenderError> {
    u32::try_from(number)
        .map_err(|_| ContenderError::new(format!("{number} does not fit in 32 bits")))
}

/// What [`Kernel::plan`] returns.
pub type Plan = Result<UniquePtr<Planned>, ContenderError>;

/// A kernel of the library, and the problems that it takes.
pub trait Kernel<P> {
    /// Why a CUDA device does not run the problem, if it does not.
    fn unsupported(&self, problem: &P, device: &DeviceInfo) -> Option<String>;

    fn plan(&self, problem: &P, buffers: &[Buffer]) -> Plan;
}

pub fn contender<P: Problem>(
    identity: Identity,
    kernel: impl Kernel<P> + 'static,
) -> Box<dyn Contender<P>> {
    Box::new(KernelContender { identity, kernel })
}

struct KernelContender<K> {
    identity: Identity,
    kernel: K,
}

impl<P: Problem, K: Kernel<P>> Contender<P> for KernelContender<K> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        match self.kernel.unsupported(problem, device) {
            Some(reason) => Support::No(reason),
            None => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundPlan(self.kernel.plan(problem, buffers)?)))
    }
}

struct BoundPlan(UniquePtr<Planned>);

impl Bound for BoundPlan {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        flashinfer::enqueue(self.0.pin_mut(), stream).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let microseconds = flashinfer::plan_microseconds(&self.0);
        Facts::from([
            ("kernel".to_owned(), flashinfer::kernel_name(&self.0).into()),
            (
                "plan_us".to_owned(),
                ((microseconds * 10.0).round() / 10.0).into(),
            ),
        ])
    }
}
