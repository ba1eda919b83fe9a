//! Multi-head latent attention decode over a paged cache on CUDA, for Rust.

#[cxx::bridge(namespace = "mla::bridge")]
mod ffi {
    /// One step of a batch with its tensors, as described in `mla.h`: device addresses.
    #[derive(Clone, Copy, Debug)]
    struct Step {
        q: usize,
        cache: usize,
        page_indptr: usize,
        page_indices: usize,
        kv_len: usize,
        out: usize,
        batch: usize,
        q_len: usize,
        heads: usize,
        page_size: usize,
        pool_pages: usize,
        dtype: Dtype,
        fp8_cache: bool,
        scale: f32,
        /// Of an FP8 cache's codes; otherwise unused.
        cache_scale: f32,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/mla/bridge.h");

        /// What runs on the current device, or why nothing does. Needs no tensors.
        fn choice(step: &Step, variant: Variant) -> Result<String>;

        /// Checks the host's copy of the table before anything is read through it, splits the work
        /// and copies the plan to the device; blocks until done.
        ///
        /// # Safety
        /// The step's addresses point to tensors of its sizes that outlive the plan, and the table
        /// on the device is the one given here.
        unsafe fn plan(
            step: &Step,
            variant: Variant,
            indptr: &[i32],
            indices: &[i32],
            lengths: &[i32],
        ) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{choice, plan, Step};
