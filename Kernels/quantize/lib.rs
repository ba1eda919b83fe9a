//! Quantisation to FP8 and FP4 and back on CUDA, for Rust.

#[cxx::bridge(namespace = "quantize::bridge")]
mod ffi {
    #[namespace = "quantize"]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(i32)]
    enum Scaling {
        Row,
        Group,
        GroupUe8m0,
        Block,
        Mxfp8,
        Nvfp4,
        Mxfp4,
    }

    #[derive(Clone, Copy, Debug)]
    struct Quantization {
        /// From `quantized` and `scales` to `x`.
        inverse: bool,
        scaling: Scaling,
        /// Of `x`.
        dtype: Dtype,
        rows: usize,
        columns: usize,
        x: usize,
        quantized: usize,
        scales: usize,
        /// Of NVFP4; otherwise 0.
        tensor_scale: usize,
    }

    /// RMSNorm, quantised with one fp32 scale per 128 elements of a row, to MXFP8 or to NVFP4.
    #[derive(Clone, Copy, Debug)]
    struct NormQuantization {
        scaling: Scaling,
        /// Of `x` and `weight`.
        dtype: Dtype,
        rows: usize,
        columns: usize,
        epsilon: f32,
        x: usize,
        weight: usize,
        quantized: usize,
        scales: usize,
        /// Of NVFP4; otherwise 0.
        tensor_scale: usize,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/quantize/bridge.h");
        #[namespace = "quantize"]
        type Scaling;

        /// Returns an error for what is not supported; addresses are ignored.
        fn check(given: &Quantization, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan(given: &Quantization, variant: Variant) -> Result<UniquePtr<Plan>>;

        /// Returns an error for what is not supported; addresses are ignored.
        fn check_norm(given: &NormQuantization, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan_norm(given: &NormQuantization, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, check_norm, plan, plan_norm, NormQuantization, Quantization, Scaling};
