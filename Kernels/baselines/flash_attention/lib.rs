//! FlashAttention's forward kernels for Rust: version 4, compiled ahead of time, and version 2.
//!
//! A version 4 kernel is named like its object in the archive (`fwd_varlen_causal_bf16_d128_g4`). Launches enqueue
//! and return immediately; failures become errors.

#[cxx::bridge(namespace = "flash_attention::bridge")]
mod ffi {
    /// A linked archive of kernels.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Artifact {
        /// Compute capability of the devices it is for.
        major: i32,
        version: String,
        sha256: String,
    }

    /// Device addresses: q and out [total_q, heads, head_dim], k and v [total_kv, kv_heads, head_dim],
    /// lse f32 [heads, total_q] for variable lengths and [batch, heads, length] for dense ones (natural
    /// logarithm), starts i32 [batch + 1].
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Attention {
        q: usize,
        k: usize,
        v: usize,
        out: usize,
        lse: usize,
        starts_q: usize,
        starts_kv: usize,
        batch: i32,
        total_q: i32,
        total_kv: i32,
        longest_q: i32,
        longest_kv: i32,
        heads: i32,
        kv_heads: i32,
        head_dim: i32,
        /// For FlashAttention-2 only: version 4 has separate kernels.
        causal: bool,
        scale: f32,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/flash_attention/bridge.h");

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

        fn launch_varlen(self: &Kernel, attention: &Attention, stream: usize) -> Result<()>;

        /// Every sequence has `longest_q` queries and `longest_kv` keys; starts are not read.
        fn launch_dense(self: &Kernel, attention: &Attention, stream: usize) -> Result<()>;

        /// `dense` as for `launch_dense`.
        fn launch_flash_attention_2(
            attention: &Attention,
            dense: bool,
            stream: usize,
        ) -> Result<()>;

        /// Device memory; freed on drop.
        type Workspace;

        fn allocate_workspace(bytes: usize) -> Result<UniquePtr<Workspace>>;

        fn address(self: &Workspace) -> usize;
    }
}

pub use cxx::UniquePtr;
pub use ffi::{
    allocate_workspace, artifacts, has_kernel, launch_flash_attention_2, load_kernel, Artifact,
    Attention, Kernel, Workspace,
};
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

/// The source package that FlashAttention-2 is compiled from.
pub const FLASH_ATTENTION_2_VERSION: &str = "2.8.3";
pub const FLASH_ATTENTION_2_SHA256: &str =
    "1e71dd64a9e0280e0447b8a0c2541bad4bf6ac65bdeaa2f90e51a9e57de0370d";
