//! The CUDA matrix products, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. `enqueue` returns at once; what
//! the launch reports becomes an error.

#[cxx::bridge(namespace = "gemm::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        Bf16,
        F16,
        Fp8,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Layout {
        Dense,
        Contiguous,
        Masked,
    }

    /// Which implementation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        /// The best that the architecture has.
        Tuned,
        /// mma.sync, on every architecture.
        Portable,
        /// fp32 units and nothing clever: the reference for whole tensors.
        Plain,
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
        rows: usize,
        n: usize,
        k: usize,
        groups: usize,
        dtype: Dtype,
        layout: Layout,
        /// Rows that a group is expected to use; 0 where nobody knows.
        expected_rows: usize,
    }

    /// What runs for a product.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Choice {
        kernel: String,
        tile_rows: i32,
        tile_columns: i32,
        stages: i32,
        /// Blocks that share out the k of one tile.
        split: i32,
        blocks: i32,
    }

    unsafe extern "C++" {
        include!("Kernels/gemm/bridge.h");

        fn check(gemm: &Gemm) -> Result<()>;
        fn choice(gemm: &Gemm, variant: Variant) -> Result<Choice>;
        fn enqueue(gemm: &Gemm, variant: Variant, stream: usize) -> Result<()>;
    }
}

pub use ffi::{check, choice, enqueue, Choice, Dtype, Gemm, Layout, Variant};
