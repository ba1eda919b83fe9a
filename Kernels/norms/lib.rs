//! The CUDA row operations, for Rust.
//!
//! Addresses are of device memory; Rust never looks behind them. Functions enqueue on `stream` and
//! return at once; what the launch reports becomes an error.

#[cxx::bridge(namespace = "norms::bridge")]
mod ffi {
    /// Which implementation of an operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Variant {
        Tuned,
        /// One block a row and nothing clever: the reference for whole tensors.
        Plain,
    }

    /// What all operations share.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Matrix {
        rows: usize,
        columns: usize,
        dtype: Dtype,
        /// Of weights, biases and their gradients; unused where an operation has none.
        weight_dtype: Dtype,
    }

    #[derive(Clone, Copy, Debug)]
    struct RmsNormForward {
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

    #[derive(Clone, Copy, Debug)]
    struct LayerNormForward {
        x: usize,
        weight: usize,
        bias: usize,
        out: usize,
        epsilon: f32,
    }

    /// RMSNorm where `mean` and `bias_gradient` are 0, else LayerNorm.
    #[derive(Clone, Copy, Debug)]
    struct NormBackward {
        x: usize,
        weight: usize,
        out_gradient: usize,
        mean: usize,
        rstd: usize,
        x_gradient: usize,
        weight_gradient: usize,
        bias_gradient: usize,
    }

    #[derive(Clone, Copy, Debug)]
    struct SoftmaxForward {
        x: usize,
        out: usize,
    }

    #[derive(Clone, Copy, Debug)]
    struct SoftmaxBackward {
        out: usize,
        out_gradient: usize,
        x_gradient: usize,
    }

    /// Targets are i64; loss and lse are f32, one per row.
    #[derive(Clone, Copy, Debug)]
    struct CrossEntropyForward {
        logits: usize,
        targets: usize,
        loss: usize,
        lse: usize,
    }

    #[derive(Clone, Copy, Debug)]
    struct CrossEntropyBackward {
        logits: usize,
        targets: usize,
        lse: usize,
        loss_gradient: usize,
        logits_gradient: usize,
    }

    /// Both in one, in place: the gradient of the losses' sum takes the place of the logits.
    #[derive(Clone, Copy, Debug)]
    struct CrossEntropyFused {
        logits: usize,
        targets: usize,
        loss: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/norms/bridge.h");

        #[namespace = "device"]
        type Dtype = bridge::Dtype;

        fn rmsnorm_forward(
            tensors: &RmsNormForward,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn fused_add_rmsnorm(
            tensors: &FusedAddRmsNorm,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn layernorm_forward(
            tensors: &LayerNormForward,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        /// Device memory for the partial sums of a backward pass; freed on drop.
        type Workspace;

        fn allocate_workspace(
            tensors: &NormBackward,
            matrix: &Matrix,
            variant: Variant,
        ) -> Result<UniquePtr<Workspace>>;

        fn norm_backward(
            tensors: &NormBackward,
            matrix: &Matrix,
            variant: Variant,
            workspace: &Workspace,
            stream: usize,
        ) -> Result<()>;

        fn softmax_forward(
            tensors: &SoftmaxForward,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn softmax_backward(
            tensors: &SoftmaxBackward,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn cross_entropy_forward(
            tensors: &CrossEntropyForward,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn cross_entropy_backward(
            tensors: &CrossEntropyBackward,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;

        fn cross_entropy_fused(
            tensors: &CrossEntropyFused,
            matrix: &Matrix,
            variant: Variant,
            stream: usize,
        ) -> Result<()>;
    }
}

pub use cxx::UniquePtr;
pub use ffi::{
    allocate_workspace, cross_entropy_backward, cross_entropy_forward, cross_entropy_fused,
    fused_add_rmsnorm, layernorm_forward, norm_backward, rmsnorm_forward, softmax_backward,
    softmax_forward, CrossEntropyBackward, CrossEntropyForward, CrossEntropyFused, Dtype,
    FusedAddRmsNorm, LayerNormForward, Matrix, NormBackward, RmsNormForward, SoftmaxBackward,
    SoftmaxForward, Variant, Workspace,
};
