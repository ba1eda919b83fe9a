//! Decode attention over a paged cache on CUDA, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error. Page tables are checked on the host's
//! copy before anything is read through them.

#[cxx::bridge(namespace = "decode::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F16,
        Bf16,
    }

    #[derive(Clone, Copy, Debug)]
    struct Problem {
        batch: usize,
        q_len: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        page_size: usize,
        pool_pages: usize,
        /// Pages are [kv_heads, page_size, head_dim], not [page_size, kv_heads, head_dim].
        head_major: bool,
        dtype: Dtype,
        /// Keys and values are FP8 e4m3, not of the type of the queries.
        fp8_cache: bool,
        /// Of scores, with the scale of FP8 keys.
        scale: f32,
        /// Of values; 1 where the cache has no scale.
        value_scale: f32,
    }

    #[derive(Clone, Copy, Debug)]
    struct Tensors {
        q: usize,
        k_pages: usize,
        v_pages: usize,
        page_indptr: usize,
        page_indices: usize,
        kv_len: usize,
        out: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/decode/bridge.h");

        /// A step with its plan and workspace on the device; freed on drop.
        type Planned;

        fn plan(
            problem: &Problem,
            tensors: &Tensors,
            indptr: &[i32],
            indices: &[i32],
            lengths: &[i32],
        ) -> Result<UniquePtr<Planned>>;

        fn enqueue(self: &Planned, stream: usize) -> Result<()>;
        fn description(self: &Planned) -> String;
        fn workspace_bytes(self: &Planned) -> usize;

        /// An error that names the entry where a table must not be read through.
        fn check_table(
            problem: &Problem,
            indptr: &[i32],
            indices: &[i32],
            lengths: &[i32],
        ) -> Result<()>;

        /// The plain kernel, which needs no plan; check the table before.
        fn enqueue_plain(problem: &Problem, tensors: &Tensors, stream: usize) -> Result<()>;
    }
}

pub use ffi::{check_table, enqueue_plain, plan, Dtype, Planned, Problem, Tensors};
