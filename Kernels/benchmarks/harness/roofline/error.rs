//! What can go wrong while roofs are measured or kept.

use device::{DeviceError, SampleError};
use report::ReportError;

/// A roof that could not be measured or kept.
#[derive(Debug, thiserror::Error)]
pub enum RooflineError {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A sample failed.
    #[error("roof {name}: {source}")]
    Sample {
        /// Which roof.
        name: String,
        /// Why.
        source: SampleError,
    },
    /// The cache file could not be written.
    #[error(transparent)]
    Store(#[from] ReportError),
    /// There is no folder for the cache.
    #[error("roofs cannot be kept: neither XDG_CACHE_HOME nor HOME is set; set one of them")]
    NoCacheFolder,
}
