//! Shared by FlashInfer's attention contenders: a plan built in `bind`, enqueued at will.

pub mod pages;
pub mod trtllm_gen;

use contender::{
    bound, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Problem, Tensors,
    PLAN_US,
};
use flashinfer::{Dtype, Planned, UniquePtr};
use numeric::DType;

pub fn identity(name: &str, timed_region: &str) -> Identity {
    let wheel = Some(flashinfer::WHEEL_SHA256.to_owned());
    Identity::baseline(name, flashinfer::VERSION, wheel, timed_region)
}

/// The library's name for a type, if a kernel here has it.
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

/// The result of planning.
pub type Plan = Result<UniquePtr<Planned>, ContenderError>;

/// A kernel of the library; `unsupported` says why a CUDA device does not run the problem, if so.
pub fn contender<P: Problem>(
    identity: Identity,
    unsupported: impl Fn(&P, &DeviceInfo) -> Option<String> + 'static,
    plan: impl Fn(&P, &Tensors) -> Plan + 'static,
) -> Box<dyn Contender<P>> {
    contender::contender(
        identity,
        DeviceKind::Cuda,
        unsupported,
        move |problem, tensors, _device| {
            let mut planned = plan(problem, tensors)?;
            let microseconds = flashinfer::plan_microseconds(&planned);
            let plan_us = (microseconds * 10.0).round() / 10.0;
            let facts = Facts::from([
                (
                    "kernel".to_owned(),
                    flashinfer::kernel_name(&planned).into(),
                ),
                (PLAN_US.to_owned(), plan_us.into()),
            ]);
            Ok(bound(facts, move |stream| {
                flashinfer::enqueue(planned.pin_mut(), stream)
            }))
        },
    )
}
