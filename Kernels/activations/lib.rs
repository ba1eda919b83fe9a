//! The CUDA activations, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "activations::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Function {
        Gelu,
        GeluTanh,
        SwiGlu,
        GeGlu,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        Tuned,
        /// One thread an element and nothing clever: the reference for whole tensors.
        Plain,
    }

    /// Addresses are 0 for what the function or the pass does not have.
    #[derive(Clone, Copy, Debug)]
    struct Activation {
        function: Function,
        backward: bool,
        dtype: Dtype,
        elements: usize,
        /// x or gate.
        first: usize,
        /// up.
        second: usize,
        out_gradient: usize,
        /// out, or the gradient of x or gate.
        first_out: usize,
        /// The gradient of up.
        second_out: usize,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Gate {
        Silu,
        GeluTanh,
        Gelu,
    }

    /// Rows of gate and up, `columns` elements each.
    #[derive(Clone, Copy, Debug)]
    struct Packed {
        gate: Gate,
        dtype: Dtype,
        rows: usize,
        columns: usize,
        input: usize,
        out: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/activations/bridge.h");

        #[namespace = "device"]
        type Dtype = bridge::Dtype;

        fn packed(packed: &Packed, variant: Variant, stream: usize) -> Result<()>;
        fn launch(activation: &Activation, variant: Variant, stream: usize) -> Result<()>;
    }
}

pub use ffi::{launch, packed, Activation, Dtype, Function, Gate, Packed, Variant};
