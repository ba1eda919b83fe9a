//! DeepGEMM's kernels, for Rust. See the README for what runs when.
//!
//! Addresses are device addresses, which Rust never dereferences. `enqueue` returns immediately;
//! launch failures become errors.

#[cxx::bridge(namespace = "deep_gemm_baseline::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Layout {
        Dense,
        Contiguous,
        Masked,
    }

    /// FP8 e4m3 has a scale per 128 of k, MXFP8 and MXFP4 one per 32.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Operands {
        Bf16,
        Fp8,
        Mxfp8,
        Mxfp4,
    }

    /// A GEMM; see `gemm.h` for the tensor shapes. Addresses of absent tensors are 0.
    #[derive(Clone, Copy, Debug)]
    struct Gemm {
        a: usize,
        b: usize,
        out: usize,
        a_scales: usize,
        b_scales: usize,
        index: usize,
        /// Per group if the layout is masked, else in total.
        m: usize,
        n: usize,
        k: usize,
        groups: usize,
        /// Rows that a masked group is expected to use.
        expected_m: usize,
        operands: Operands,
        /// Scales are UE8M0 in tiles, for each row of a and of b; else fp32. Only for sm_100a.
        tiled_scales: bool,
        layout: Layout,
    }

    /// The library's choice for a GEMM.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Choice {
        tile: String,
        block_m: i32,
        block_n: i32,
        stages: i32,
        cluster_m: i32,
        cluster_n: i32,
        /// The operand that the two blocks of a cluster share.
        multicast: String,
        shared_bytes: i32,
        /// Computes the transposed product.
        swaps: bool,
        /// Whether its kernel was compiled ahead of time.
        is_linked: bool,
        /// For a message.
        words: String,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/deep_gemm/bridge.h");

        /// On the current device; an error if the library cannot run there.
        fn choice(gemm: &Gemm) -> Result<Choice>;

        /// On an H100 or H200, without a device.
        fn choice_for_sm90(gemm: &Gemm) -> Result<Choice>;
        /// On a B200, without one.
        fn choice_for_b200(gemm: &Gemm) -> Result<Choice>;

        type Plan;
        /// Chooses the kernel, and converts the scales if it needs another layout: they must already
        /// have their values.
        fn plan(gemm: &Gemm) -> Result<UniquePtr<Plan>>;
        /// The same with a kernel that was built on demand for the library's choice: `code` is its cubin, or PTX that
        /// ends with a nul.
        fn plan_built(gemm: &Gemm, code: &[u8]) -> Result<UniquePtr<Plan>>;
        fn enqueue(self: &Plan, stream: usize) -> Result<()>;
        /// Converts the scales that the tensors hold now.
        fn reread(self: &Plan) -> Result<()>;
    }
}

/// The wheel that the kernels come from, as in the artifact lock.
pub const VERSION: &str = "0.2.5";
pub const WHEEL_SHA256: &str = "e13778e53f682b806dd2c799b5ad81701114d9346044643a8df7589a845f34e6";

pub use cxx::UniquePtr;
pub use ffi::{
    choice, choice_for_b200, choice_for_sm90, plan, plan_built, Choice, Gemm, Layout, Operands,
    Plan,
};
