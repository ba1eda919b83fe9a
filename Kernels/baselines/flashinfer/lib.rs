//! FlashInfer's kernels, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the library throws or the launch reports becomes an error.

#[cxx::bridge(namespace = "fi::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F16,
        Bf16,
    }

    /// The shape of a row operation; the type is that of activations and weights.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Matrix {
        rows: usize,
        columns: usize,
        dtype: Dtype,
    }

    #[derive(Clone, Copy, Debug)]
    struct RmsNorm {
        x: usize,
        weight: usize,
        out: usize,
        epsilon: f32,
    }

    /// In place: residual += x, then x = norm(residual) * weight.
    #[derive(Clone, Copy, Debug)]
    struct FusedAddRmsNorm {
        x: usize,
        residual: usize,
        weight: usize,
        epsilon: f32,
    }

    /// Weight and bias are f32, x and out bf16.
    #[derive(Clone, Copy, Debug)]
    struct LayerNorm {
        x: usize,
        weight: usize,
        bias: usize,
        out: usize,
        epsilon: f32,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/flashinfer/bridge.h");

        fn rmsnorm(tensors: &RmsNorm, matrix: &Matrix, stream: usize) -> Result<()>;

        fn fused_add_rmsnorm(
            tensors: &FusedAddRmsNorm,
            matrix: &Matrix,
            stream: usize,
        ) -> Result<()>;

        fn layernorm(tensors: &LayerNorm, matrix: &Matrix, stream: usize) -> Result<()>;
    }
}

pub use ffi::*;

/// Of the wheel that the kernels are compiled from.
pub const VERSION: &str = "0.6.13";
pub const WHEEL_SHA256: &str = "239e6ddc3cbbaf0bee251861a8c7c69438b1171830d69ddfa133ddea4494850d";
