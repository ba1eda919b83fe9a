//! DeepGEMM's kernels, for Rust. See the README for what runs when.
//!
//! Addresses are of device memory; Rust never looks behind them. `enqueue` returns at once; what
//! the launch reports becomes an error.

#[cxx::bridge(namespace = "deep_gemm_baseline::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Layout {
        Dense,
        Contiguous,
        Masked,
    }

    /// A product; see `gemm.h` for the tensors' shapes. Addresses are 0 where there is no such
    /// tensor.
    #[derive(Clone, Copy, Debug)]
    struct Gemm {
        a: usize,
        b: usize,
        out: usize,
        a_scales: usize,
        b_scales: usize,
        index: usize,
        /// Of one group where the layout is masked, else of all.
        m: usize,
        n: usize,
        k: usize,
        groups: usize,
        /// Rows that a masked group is expected to use.
        expected_m: usize,
        /// FP8 with scales; else bf16.
        fp8: bool,
        layout: Layout,
    }

    /// What the library chooses for a product.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Choice {
        tile: String,
        stages: i32,
        /// The operand that the two blocks of a cluster share.
        multicast: String,
        shared_bytes: i32,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/deep_gemm/bridge.h");

        fn choice(gemm: &Gemm) -> Result<Choice>;

        type Plan;
        /// Chooses the kernel, and where the scales are not as it wants them lays them out: they
        /// must have their values by now.
        fn plan(gemm: &Gemm) -> Result<UniquePtr<Plan>>;
        fn enqueue(self: &Plan, stream: usize) -> Result<()>;
    }
}

/// The wheel that the kernels come from, as the artifact lock has it.
pub const VERSION: &str = "0.2.5";
pub const WHEEL_SHA256: &str = "e13778e53f682b806dd2c799b5ad81701114d9346044643a8df7589a845f34e6";

pub use cxx::UniquePtr;
pub use ffi::{choice, plan, Choice, Gemm, Layout, Plan};
