//! The CUDA matrix products, for Rust.

#[cxx::bridge(namespace = "gemm::bridge")]
mod ffi {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Layout {
        Dense,
        Contiguous,
        Masked,
    }

    /// A product with its tensors, as described in `gemm.h`: device addresses, 0 for a tensor that
    /// is absent.
    #[derive(Clone, Copy, Debug)]
    struct Product {
        a: usize,
        b: usize,
        out: usize,
        a_scales: usize,
        b_scales: usize,
        tensor_scale: usize,
        index: usize,
        /// Per group if the layout is masked, else in all.
        rows: usize,
        n: usize,
        k: usize,
        groups: usize,
        dtype: Dtype,
        layout: Layout,
        /// Rows that a group is expected to use; 0 if unknown.
        expected_rows: usize,
    }

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/gemm/bridge.h");

        /// What runs on the current device, or why nothing does. Needs no tensors.
        fn choice(product: &Product, variant: Variant) -> Result<String>;

        /// # Safety
        /// The product's addresses point to tensors of its sizes that outlive the plan.
        unsafe fn plan(product: &Product, variant: Variant) -> Result<UniquePtr<Plan>>;

        /// The same with the fastest of several kernels on these tensors, which takes milliseconds the first time
        /// that a shape is planned, and writes the result.
        ///
        /// # Safety
        /// As for `plan`; nobody else uses the result meanwhile.
        unsafe fn measured_plan(product: &Product) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{choice, measured_plan, plan, Layout, Product};
