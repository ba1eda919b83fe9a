//! The CUDA row operations, for Rust.

#[cxx::bridge(namespace = "norms::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Op {
        RmsNormForward,
        FusedAddRmsNorm,
        LayerNormForward,
        RmsNormBackward,
        LayerNormBackward,
        SoftmaxForward,
        SoftmaxBackward,
        CrossEntropyForward,
        CrossEntropyBackward,
        CrossEntropyFused,
    }

    /// Addresses are 0 for what the operation does not have; see norms.h for the layouts.
    #[derive(Clone, Copy, Debug)]
    struct Norm {
        op: Op,
        rows: usize,
        columns: usize,
        dtype: Dtype,
        /// Of weights, biases and their gradients; unused where an operation has none.
        weight_dtype: Dtype,
        epsilon: f32,
        x: usize,
        residual: usize,
        weight: usize,
        bias: usize,
        out: usize,
        mean: usize,
        rstd: usize,
        out_gradient: usize,
        x_gradient: usize,
        weight_gradient: usize,
        bias_gradient: usize,
        logits: usize,
        targets: usize,
        loss: usize,
        lse: usize,
        loss_gradient: usize,
        logits_gradient: usize,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/norms/bridge.h");

        /// What is not supported is an error; addresses do not matter.
        fn check(given: &Norm, variant: Variant) -> Result<()>;

        /// # Safety
        /// Addresses are of device memory that holds the tensors.
        unsafe fn plan(given: &Norm, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, plan, Norm, Op};
