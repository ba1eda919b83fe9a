//! What can go wrong while roofs are measured or cached.

use device::{DeviceError, SampleError};
use record::RecordError;

/// A roof that could not be measured or cached.
#[derive(Debug, thiserror::Error)]
pub enum RooflineError {
    /// The device failed.
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
    Store(#[from] RecordError),
    /// There is no folder for the cache.
    #[error("cannot cache roofs: neither XDG_CACHE_HOME nor HOME is set")]
    NoCacheFolder,
}
