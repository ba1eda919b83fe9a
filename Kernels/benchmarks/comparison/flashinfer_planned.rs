//! What FlashInfer's attention contenders share: a plan made in `bind`, enqueued any number of times.

use contender::{Bound, ContenderError, Facts, Identity, Kind, Stream};
use flashinfer::{Dtype, Planned, UniquePtr};
use numeric::DType;

pub fn identity(name: &str, timed_region: &str) -> Identity {
    Identity {
        name: name.to_owned(),
        kind: Kind::Baseline,
        version: flashinfer::VERSION.to_owned(),
        artifact_sha256: Some(flashinfer::WHEEL_SHA256.to_owned()),
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

pub struct BoundPlan(pub UniquePtr<Planned>);

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
