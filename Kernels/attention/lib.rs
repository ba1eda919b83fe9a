//! The CUDA attention kernels, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "attention::bridge")]
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

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct PrefillShape {
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

    #[derive(Clone, Copy, Debug)]
    struct PrefillTensors {
        q: usize,
        k: usize,
        v: usize,
        /// i32, where each sequence starts, and the end; only the plain kernel reads them.
        starts_q: usize,
        starts_kv: usize,
        out: usize,
        /// f32; 0 where it is not wanted.
        lse: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/attention/bridge.h");

        /// The choice of a kernel for one batch, and its tiles in device memory; freed on drop.
        type PrefillPlan;

        /// Whether the best kernel on Hopper is another than the portable one.
        fn suits_wgmma(shape: &PrefillShape) -> Result<bool>;

        /// Chooses, cuts and copies: waits for the device.
        fn plan_prefill(
            shape: &PrefillShape,
            choice: KernelChoice,
            starts_q: &[i32],
            starts_kv: &[i32],
        ) -> Result<UniquePtr<PrefillPlan>>;

        fn description(self: &PrefillPlan) -> String;
        fn tile_count(self: &PrefillPlan) -> usize;

        fn prefill(
            tensors: &PrefillTensors,
            shape: &PrefillShape,
            plan: &PrefillPlan,
            stream: usize,
        ) -> Result<()>;

        /// One warp a query and head and nothing clever: the reference for whole tensors.
        fn plain_prefill(
            tensors: &PrefillTensors,
            shape: &PrefillShape,
            sequences: usize,
            stream: usize,
        ) -> Result<()>;
    }
}

pub use cxx::UniquePtr;
pub use ffi::{
    plain_prefill, plan_prefill, prefill, suits_wgmma, Dtype, KernelChoice, PrefillPlan,
    PrefillShape, PrefillTensors,
};
