//! CUDA native sparse attention, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "nsa::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        Tuned,
        /// One block a query head and nothing clever: the reference for whole tensors.
        Plain,
    }

    /// What a query sees in a banded branch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Reach {
        /// The last keys up to its own.
        Window,
        /// A row for each whole block up to it.
        Compressed,
    }

    /// What the branches share; see nsa.h for the layouts.
    #[derive(Clone, Copy, Debug)]
    struct Branch {
        dtype: Dtype,
        tokens: usize,
        sequence: usize,
        heads: usize,
        groups: usize,
        dim: usize,
        scale: f32,
        queries: usize,
        keys: usize,
        values: usize,
        out: usize,
        lse: usize,
    }

    #[derive(Clone, Copy, Debug)]
    struct Selected {
        branch: Branch,
        block: usize,
        selected: usize,
        blocks: usize,
    }

    #[derive(Clone, Copy, Debug)]
    struct Banded {
        branch: Branch,
        reach: Reach,
        /// Keys of the window, or tokens of a block.
        size: usize,
    }

    /// Outputs and gates of the branches.
    #[derive(Clone, Copy, Debug)]
    struct Gated {
        dtype: Dtype,
        rows: usize,
        dim: usize,
        outputs: [usize; 3],
        gates: [usize; 3],
        out: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/nsa/bridge.h");

        #[namespace = "device"]
        type Dtype = bridge::Dtype;

        fn selected(params: &Selected, variant: Variant, stream: usize) -> Result<()>;
        fn banded(params: &Banded, variant: Variant, stream: usize) -> Result<()>;
        fn gated(params: &Gated, variant: Variant, stream: usize) -> Result<()>;
    }
}

pub use ffi::{banded, gated, selected, Banded, Branch, Dtype, Gated, Reach, Selected, Variant};

/// What the tuned kernels have been written for.
pub const DIMS: [usize; 2] = [64, 128];
pub const MAX_HEADS_PER_GROUP: usize = 16;
pub const MAX_SELECTED: usize = 32;
pub const BLOCK_MULTIPLE: usize = 16;
pub const GATED_DIM_MULTIPLE: usize = 8;
