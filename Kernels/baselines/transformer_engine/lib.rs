//! NVIDIA's Transformer Engine, loaded on first use: its C functions on tensors of the caller.
//!
//! Neither headers nor libraries of it are needed to build this. Its functions throw C++ exceptions, which the
//! bridge turns into errors.

mod library;
mod operation;

#[cxx::bridge(namespace = "transformer_engine_bridge")]
mod ffi {
    /// Addresses of the library's functions.
    #[derive(Clone, Copy, Debug)]
    struct Functions {
        create_tensor: usize,
        destroy_tensor: usize,
        set_tensor: usize,
        tensor_bytes: usize,
        /// The one that is timed.
        operation: usize,
    }

    /// Parameters of a function, of which the tensors are given in its order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Signature {
        /// x, weight, out, rstd.
        RmsNormForward,
        /// out_gradient, x, rstd, weight, x_gradient, weight_gradient.
        RmsNormBackward,
        /// x, weight, bias, out, mean, rstd.
        LayerNormForward,
        /// out_gradient, x, mean, rstd, weight, x_gradient, weight_gradient, bias_gradient.
        LayerNormBackward,
        /// x, out.
        Unary,
        /// out_gradient, x, x_gradient.
        Gradient,
    }

    /// In device memory, dense.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Tensor {
        address: usize,
        /// An NVTEDType.
        dtype: i32,
        rows: usize,
        /// 0 for a vector.
        columns: usize,
    }

    unsafe extern "C++" {
        include!("Kernels/baselines/transformer_engine/bridge.h");

        type Operation;

        fn use_own_norms(enable_cudnn_forward: usize, enable_cudnn_backward: usize) -> Result<()>;

        fn prepare(
            functions: &Functions,
            signature: Signature,
            tensors: &[Tensor],
            epsilon: f32,
            multiprocessors: i32,
        ) -> Result<UniquePtr<Operation>>;

        /// Compiles the kernels, too.
        fn workspace_bytes(self: &Operation) -> Result<usize>;

        fn set_workspace(self: &Operation, address: usize, bytes: usize) -> Result<()>;

        fn enqueue(self: &Operation, stream: usize) -> Result<()>;
    }
}

pub use ffi::Tensor;
pub use library::{library, Library};
pub use operation::{DataType, Function, Prepared};
