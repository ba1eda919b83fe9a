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

        /// A kernel of a library that stays open, by the addresses of its functions.
        ///
        /// # Safety
        /// They are those of one kernel, exported by the library's recipe.
        unsafe fn load_opened(
            name: &str,
            init: usize,
            load: usize,
            entry: usize,
            argument_count: i32,
        ) -> Result<UniquePtr<Kernel>>;

        /// `scalars` are the bits of 4-byte values.
        fn launch(self: &Kernel, tensors: &[Tensor], scalars: &[u32], stream: usize) -> Result<()>;
    }
}

pub use cxx::UniquePtr;
pub use ffi::{artifacts, has_kernel, load_kernel, Artifact, Kernel, Tensor};
use on_demand::CuteLibrary;

/// A kernel that was built on demand, on the current device.
pub fn load_built(library: &CuteLibrary, name: &str) -> Result<UniquePtr<Kernel>, String> {
    let kernel = library.kernel(name)?;
    // SAFETY: the library's recipe exported them for this kernel, and it stays open.
    let loaded = unsafe {
        ffi::load_opened(
            name,
            kernel.init,
            kernel.load,
            kernel.entry,
            kernel.argument_count,
        )
    };
    loaded.map_err(|error| error.to_string())
}

/// Rows of fp32 weight-gradient partials that Quack's backward kernels write: its `get_sm_count`. This is also their
/// number of blocks.
pub fn partial_rows(major: i32, multiprocessors: u32, columns: usize) -> usize {
    let count = multiprocessors as usize;
    match columns {
        0..=256 => count * 16,
        257..=1024 => count * 8,
        1025..=2048 => count * 4,
        _ if major >= 10 => count * 2,
        2049..=4096 => count * 2,
        4097..=8192 => count,
        8193..=16384 => count / 2,
        _ => count * 2,
    }
}
