//! Triton kernels, compiled ahead of time and launched through the driver, or, as PTX, in the interpreter: no Python,
//! no JIT.
//!
//! [`archive`] has those of each library for the architectures of this build. A [`Loaded`] kernel is
//! launched on a stream, with grid and arguments as in the library's own Python launcher.

mod built;
#[cfg(feature = "emulated")]
mod interpreted;
mod kernel;
#[cfg(feature = "cuda")]
mod loaded;

pub use built::{archive_with, missing};
#[cfg(feature = "emulated")]
pub use interpreted::{fastest, Loaded};
pub use kernel::{Archive, Argument, Kernel, Parameter};
#[cfg(feature = "cuda")]
pub use loaded::{fastest, Loaded};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TritonError {
    #[error("an archive of Triton kernels cannot be used: {0}")]
    Archive(String),
    #[error("no kernels for {0} in this build")]
    Absent(String),
    #[error(transparent)]
    Missing(#[from] on_demand::Missing),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Argument(String),
    #[error("{call}: {status}")]
    Driver { call: &'static str, status: String },
}

/// A library whose kernels are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Liger,
    /// flash-linear-attention's native sparse attention.
    FlaNsa,
}

/// The kernels of a library for an architecture (`sm_90a`).
pub fn archive(library: Library, arch: &str) -> Result<Archive, TritonError> {
    let parts: Option<(&str, &'static [u8])> = match (library, arch) {
        #[cfg(feature = "sm_90a")]
        (Library::Liger, "sm_90a") => Some((liger_sm_90a::KERNELS, liger_sm_90a::CUBINS)),
        #[cfg(feature = "sm_90a")]
        (Library::FlaNsa, "sm_90a") => Some((fla_nsa_sm_90a::KERNELS, fla_nsa_sm_90a::CUBINS)),
        #[cfg(feature = "compute_90a")]
        (Library::Liger, "sm_90a") => Some((liger_compute_90a::KERNELS, liger_compute_90a::PTX)),
        #[cfg(feature = "compute_90a")]
        (Library::FlaNsa, "sm_90a") => {
            Some((fla_nsa_compute_90a::KERNELS, fla_nsa_compute_90a::PTX))
        }
        #[cfg(feature = "sm_100a")]
        (Library::Liger, "sm_100a") => Some((liger_sm_100a::KERNELS, liger_sm_100a::CUBINS)),
        #[cfg(feature = "sm_100a")]
        (Library::FlaNsa, "sm_100a") => Some((fla_nsa_sm_100a::KERNELS, fla_nsa_sm_100a::CUBINS)),
        #[cfg(feature = "compute_100a")]
        (Library::Liger, "sm_100a") => Some((liger_compute_100a::KERNELS, liger_compute_100a::PTX)),
        #[cfg(feature = "compute_100a")]
        (Library::FlaNsa, "sm_100a") => {
            Some((fla_nsa_compute_100a::KERNELS, fla_nsa_compute_100a::PTX))
        }
        _ => None,
    };
    let (kernels, code) = parts.ok_or_else(|| TritonError::Absent(arch.to_owned()))?;
    Archive::parse(kernels, code)
}
