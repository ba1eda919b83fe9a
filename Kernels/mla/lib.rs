//! Decode of multi-head latent attention over a paged cache on CUDA, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error. Page tables are checked on the host's
//! copy before anything is read through them.

#[cxx::bridge(namespace = "mla::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F16,
        Bf16,
    }

    /// Which kernel a plan is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum KernelChoice {
        /// The one that suits the shape and the device best.
        Best,
        /// The one that every architecture has.
        Portable,
    }

    #[derive(Clone, Copy, Debug)]
    struct Problem {
        batch: usize,
        q_len: usize,
        heads: usize,
        page_size: usize,
        pool_pages: usize,
        dtype: Dtype,
        scale: f32,
    }

    #[derive(Clone, Copy, Debug)]
    struct Tensors {
        q: usize,
        cache: usize,
        page_indptr: usize,
        page_indices: usize,
        kv_len: usize,
        out: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/mla/bridge.h");

        /// A step with its plan and workspace on the device; freed on drop.
        type Planned;

        fn plan(
            problem: &Problem,
            choice: KernelChoice,
            tensors: &Tensors,
            indptr: &[i32],
            indices: &[i32],
            lengths: &[i32],
        ) -> Result<UniquePtr<Planned>>;

        fn enqueue(self: &Planned, stream: usize) -> Result<()>;
        fn description(self: &Planned) -> String;
        fn workspace_bytes(self: &Planned) -> usize;

        /// Whether the current device has a better kernel for the shape than the portable one.
        fn has_better(problem: &Problem) -> Result<bool>;

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

pub use ffi::{
    check_table, enqueue_plain, has_better, plan, Dtype, KernelChoice, Planned, Problem, Tensors,
};
