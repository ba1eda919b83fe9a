//! The CUDA row operations, for Rust.

#[cxx::bridge(namespace = "norms::bridge")]
mod ffi {
    /// A row operation, by the name that workloads and results use; see norms.h for tensors' layouts.
    #[derive(Clone, Debug)]
    struct Norm {
        op: String,
        rows: usize,
        columns: usize,
        dtype: Dtype,
        /// Type of weights, biases and their gradients; unused if an operation has none.
        weight_dtype: Dtype,
        epsilon: f32,
        tensors: Vec<Tensor>,
    }

    #[derive(Clone, Debug)]
    struct Tensor {
        name: String,
        address: usize,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/norms/bridge.h");

        /// Returns an error for what is not supported; tensors are ignored.
        fn check(given: &Norm, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan(given: &Norm, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, plan, Norm, Tensor};
