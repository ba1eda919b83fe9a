//! Rotary position embedding on CUDA, for Rust.

#[cxx::bridge(namespace = "rope::bridge")]
mod ffi {
    /// Heads are `[tokens, heads, dim]`, cos and sin fp32 `[sequence, dim / 2]`.
    #[derive(Clone, Copy, Debug)]
    struct Rope {
        backward: bool,
        interleaved: bool,
        dtype: Dtype,
        tokens: usize,
        sequence: usize,
        query_heads: usize,
        key_heads: usize,
        dim: usize,
        queries: usize,
        keys: usize,
        cos: usize,
        sin: usize,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/rope/bridge.h");

        /// Returns an error for what is not supported; addresses are ignored.
        fn check(rope: &Rope, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan(rope: &Rope, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, plan, Rope};
