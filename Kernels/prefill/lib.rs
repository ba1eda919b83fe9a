//! The CUDA prefill kernels, for Rust.

#[cxx::bridge(namespace = "prefill::bridge")]
mod ffi {
    /// A batch of sequences with its tensors, as `prefill.h` describes them: addresses of device
    /// memory, 0 where there is no such tensor.
    #[derive(Clone, Copy, Debug)]
    struct Batch {
        q: usize,
        k: usize,
        v: usize,
        /// i32, where each sequence starts, and the end; only the plain kernel reads them.
        starts_q: usize,
        starts_kv: usize,
        out: usize,
        /// f32, if it is wanted.
        lse: usize,
        total_q: usize,
        total_kv: usize,
        /// Keys of the longest sequence.
        longest_kv: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
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

        /// Chooses, cuts and copies: waits for the device.
        ///
        /// # Safety
        /// The batch's addresses are of tensors with its sizes, alive as long as the plan.
        unsafe fn plan(
            batch: &Batch,
            variant: Variant,
            starts_q: &[i32],
            starts_kv: &[i32],
        ) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{choice, plan, Batch};
