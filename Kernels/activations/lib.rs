//! The CUDA activations, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. `launch` enqueues on `stream` and
//! returns at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "activations::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Dtype {
        F32,
        F16,
        Bf16,
    }

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

    unsafe extern "C++" {
        include!("Kernels/activations/bridge.h");

        fn launch(activation: &Activation, variant: Variant, stream: usize) -> Result<()>;
    }
}

pub use ffi::{launch, Activation, Dtype, Function, Variant};
