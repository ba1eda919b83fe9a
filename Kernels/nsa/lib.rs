//! CUDA native sparse attention, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. `launch` enqueues on `stream` and
//! returns at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "nsa::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F32,
        F16,
        Bf16,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        Tuned,
        /// One block a query head and nothing clever: the reference for whole tensors.
        Plain,
    }

    /// The selected-block branch; see nsa.h for the layouts.
    #[derive(Clone, Copy, Debug)]
    struct Selected {
        dtype: Dtype,
        tokens: usize,
        sequence: usize,
        heads: usize,
        groups: usize,
        dim: usize,
        block: usize,
        selected: usize,
        scale: f32,
        queries: usize,
        keys: usize,
        values: usize,
        blocks: usize,
        out: usize,
        lse: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/nsa/bridge.h");

        fn launch(selected: &Selected, variant: Variant, stream: usize) -> Result<()>;
    }
}

pub use ffi::{launch, Dtype, Selected, Variant};

/// What the tuned kernel has been written for.
pub const DIMS: [usize; 2] = [64, 128];
pub const MAX_HEADS_PER_GROUP: usize = 16;
pub const MAX_SELECTED: usize = 32;
pub const BLOCK_MULTIPLE: usize = 16;
