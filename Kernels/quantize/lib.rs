//! CUDA quantisation to FP8 and back, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "quantize::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Scaling {
        Row,
        Group,
        GroupUe8m0,
        Block,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        Tuned,
        /// One thread a group and nothing clever: the reference for whole tensors.
        Plain,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Matrix {
        rows: usize,
        columns: usize,
        scaling: Scaling,
        /// Of what is quantised, or of the inverse.
        dtype: Dtype,
    }

    unsafe extern "C++" {
        include!("Kernels/quantize/bridge.h");

        #[namespace = "device"]
        type Dtype = bridge::Dtype;

        fn quantize(
            matrix: &Matrix,
            x: usize,
            quantized: usize,
            scales: usize,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn dequantize(
            matrix: &Matrix,
            quantized: usize,
            scales: usize,
            out: usize,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;
    }
}

pub use ffi::{dequantize, quantize, Dtype, Matrix, Scaling, Variant};

/// What the kernels want the columns to be a multiple of.
pub const COLUMN_MULTIPLE: usize = 16;
