//! Quack's kernels, compiled ahead of time, for Rust.
//!
//! A kernel is named like its object in the archive (`rmsnorm_fwd_bf16_wf32_n4096`) and takes tensors
//! and scalars in the order of the archive's `kernels.json`. Launches enqueue and return immediately.

#[cxx::bridge(namespace = "quack::bridge")]
mod ffi {
    /// A linked archive of kernels.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Artifact {
        /// Compute capability of the devices it is for.
        major: i32,
        version: String,
        sha256: String,
    }

    /// A tensor argument. Kernels with a fixed extent ignore it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Tensor {
        address: usize,
        rows: i32,
        /// Between rows, in elements.
        stride: i64,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/quack/bridge.h");

        /// One per architecture of the build.
        fn artifacts() -> Vec<Artifact>;

        fn has_kernel(major: i32, name: &str) -> bool;

        /// A kernel on the current device.
        type Kernel;

        fn load_kernel(major: i32, name: &str) -> Result<UniquePtr<Kernel>>;

        /// `scalars` are the bits of 4-byte values.
        fn launch(self: &Kernel, tensors: &[Tensor], scalars: &[u32], stream: usize) -> Result<()>;
    }
}

pub use cxx::UniquePtr;
pub use ffi::{artifacts, has_kernel, load_kernel, Artifact, Kernel, Tensor};

/// Rows of fp32 weight-gradient partials that Quack's backward kernels write: its `get_sm_count` for the
/// exported widths (up to 8192). This is also their number of blocks.
pub fn partial_rows(major: i32, multiprocessors: u32, columns: usize) -> usize {
    let per_multiprocessor = if major >= 10 || columns <= 4096 { 2 } else { 1 };
    multiprocessors as usize * per_multiprocessor
}
