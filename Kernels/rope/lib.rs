//! CUDA rotary position embedding, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. `launch` enqueues on `stream` and
//! returns at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "rope::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        Tuned,
        /// One thread a pair and nothing clever: the reference for whole tensors.
        Plain,
    }

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

    unsafe extern "C++" {
        include!("Kernels/rope/bridge.h");

        #[namespace = "device"]
        type Dtype = bridge::Dtype;

        fn launch(rope: &Rope, variant: Variant, stream: usize) -> Result<()>;
    }
}

pub use ffi::{launch, Dtype, Rope, Variant};

/// What the kernels want `dim` to be a multiple of.
pub const DIM_MULTIPLE: usize = 16;
