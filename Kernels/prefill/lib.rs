//! The CUDA prefill kernels, for Rust.

#[cxx::bridge(namespace = "prefill::bridge")]
mod ffi {
    /// A batch of sequences with its tensors, as described in `prefill.h`: device addresses, 0 for
    /// a tensor that is absent.
    #[derive(Clone, Copy, Debug)]
    struct Batch {
        q: usize,
        k: usize,
        v: usize,
        /// i32, where each sequence starts, plus the end; only the plain kernel reads them.
        starts_q: usize,
        starts_kv: usize,
        out: usize,
        /// f32, optional.
        lse: usize,
        total_q: usize,
        total_kv: usize,
        sequences: usize,
        /// Keys of the longest sequence.
        longest_kv: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        /// Of values and outputs.
        value_dim: usize,
        causal: bool,
        scale: f32,
        dtype: Dtype,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/prefill/bridge.h");

        /// What runs on the current device, or why nothing does. Needs no tensors.
        fn choice(batch: &Batch, variant: Variant) -> Result<String>;

        /// Selects a kernel, cuts the work and copies it to the device; blocks until done.
        ///
        /// # Safety
        /// The batch's addresses point to tensors of its sizes that outlive the plan.
        unsafe fn plan(
            batch: &Batch,
            variant: Variant,
            starts_q: &[i32],
            starts_kv: &[i32],
        ) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{choice, plan, Batch};
