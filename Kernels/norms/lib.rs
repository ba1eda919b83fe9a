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

    /// Addresses are 0 for tensors that the operation does not have; see norms.h for the layouts.
    #[derive(Clone, Copy, Debug)]
    struct Norm {
        op: Op,
        rows: usize,
        columns: usize,
        dtype: Dtype,
        /// Type of weights, biases and their gradients; unused if an operation has none.
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

        /// Returns an error for what is not supported; addresses are ignored.
        fn check(given: &Norm, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan(given: &Norm, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, plan, Norm, Op};
