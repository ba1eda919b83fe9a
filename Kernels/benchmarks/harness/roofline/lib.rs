//! The measured limits of a device: memory bandwidth and arithmetic peaks.
//!
//! A share of roof is honest only relative to what this very card can do, so the roofs are measured,
//! by sweeping launch shapes over incompressible data, and cached for the same card under the same
//! driver, clocks and power limit.

mod cache;
mod cpu;
mod cpu_fma;
#[cfg(feature = "cuda")]
mod cuda;
mod error;
mod peak;

pub use cache::{cache_path, load, store, to_json, CachedRoof, Conditions};
pub use error::RooflineError;
pub use peak::Peak;

use device::{Device, DeviceKind};

/// What was measured, and what could not be.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The roofs, memory first.
    pub peaks: Vec<Peak>,
    /// Roofs that this device or build cannot measure, and why.
    pub notes: Vec<String>,
}

/// Measures every roof of `device`, in seconds rather than minutes.
pub fn measure(device: &dyn Device) -> Result<Measured, RooflineError> {
    match device.info().kind {
        DeviceKind::Cpu => cpu::measure(device),
        DeviceKind::Cuda if device.info().emulated => {
            Err(device::DeviceError::NoClockRewritten.into())
        }
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => cuda::measure(device),
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda => Err(device::DeviceError::NotBuilt.into()),
        DeviceKind::Ptx => Err(device::DeviceError::NoClock.into()),
    }
}
