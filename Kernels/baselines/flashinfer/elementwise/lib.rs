//! FlashInfer's norms, gated activations and rotary embedding, for Rust; bf16, norms also f16.
//!
//! Addresses are device addresses, which Rust never dereferences. Functions enqueue on `stream` and
//! return immediately; launch failures become errors.

#[cxx::bridge(namespace = "fi::elementwise")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F16,
        Bf16,
    }

    #[namespace = "fi"]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    enum NormOp {
        RmsNorm,
        FusedAddRmsNorm,
        LayerNorm,
    }

    /// A row operation (norms.h); addresses are 0 for tensors that it does not have.
    #[derive(Clone, Copy, Debug)]
    struct Norm {
        op: NormOp,
        dtype: Dtype,
        rows: usize,
        columns: usize,
        epsilon: f32,
        x: usize,
        residual: usize,
        weight: usize,
        bias: usize,
        out: usize,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Gate {
        Silu,
        GeluTanh,
        Gelu,
    }

    /// A row of the input is gate and up, `columns` elements each.
    #[derive(Clone, Copy, Debug)]
    struct ActAndMul {
        gate: Gate,
        input: usize,
        out: usize,
        rows: usize,
        columns: usize,
    }

    /// Heads in place.
    #[derive(Clone, Copy, Debug)]
    struct Rope {
        queries: usize,
        keys: usize,
        tokens: u32,
        query_heads: u32,
        key_heads: u32,
        dim: u32,
        interleaved: bool,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/flashinfer/elementwise/bridge.h");

        /// Cosines and sines in the library's layout, and the position of each token.
        #[namespace = "fi"]
        type RopeTables;

        /// From tables `[sequence, dim / 2]` in device memory; waits for the device.
        fn rope_tables(
            cos: usize,
            sin: usize,
            sequence: u32,
            dim: u32,
            tokens: u32,
        ) -> Result<UniquePtr<RopeTables>>;

        fn rope(params: &Rope, tables: &RopeTables, stream: usize) -> Result<()>;

        fn act_and_mul(params: &ActAndMul, stream: usize) -> Result<()>;

        #[namespace = "fi"]
        type NormOp;

        fn norm(given: &Norm, stream: usize) -> Result<()>;
    }
}

pub use cxx::UniquePtr;
pub use ffi::*;

/// Compiled head sizes.
pub const ROPE_DIMS: [usize; 2] = [64, 128];
/// Columns of the activations are multiples of this.
pub const COLUMN_MULTIPLE: usize = 8;
/// Version of the wheel that the kernels are compiled from.
pub const VERSION: &str = "0.6.13";
pub const WHEEL_SHA256: &str = "239e6ddc3cbbaf0bee251861a8c7c69438b1171830d69ddfa133ddea4494850d";
