//! The CUDA activations, for Rust.

#[cxx::bridge(namespace = "activations::bridge")]
mod ffi {
    #[namespace = "activations"]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(i32)]
    enum Function {
        Gelu,
        GeluTanh,
        SwiGlu,
        GeGlu,
    }

    #[namespace = "activations"]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(i32)]
    enum Gate {
        Silu,
        GeluTanh,
        Gelu,
    }

    /// Addresses are 0 for tensors that the function or the pass does not have.
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

    #[namespace = "device"]
    unsafe extern "C++" {
        type Dtype = bridge::Dtype;
        type Plan = bridge::Plan;
        type Variant = bridge::Variant;
    }

    unsafe extern "C++" {
        include!("Kernels/activations/bridge.h");
        #[namespace = "activations"]
        type Function;
        #[namespace = "activations"]
        type Gate;

        /// Returns an error for what is not supported; addresses are ignored.
        fn check(given: &Activation, variant: Variant) -> Result<()>;
        fn check_packed(given: &Packed, variant: Variant) -> Result<()>;

        /// # Safety
        /// The addresses point to device memory that holds the tensors.
        unsafe fn plan(given: &Activation, variant: Variant) -> Result<UniquePtr<Plan>>;

        /// # Safety
        /// As for [`plan`].
        unsafe fn plan_packed(given: &Packed, variant: Variant) -> Result<UniquePtr<Plan>>;
    }
}

pub use ffi::{check, check_packed, plan, plan_packed, Activation, Function, Gate, Packed};

impl Function {
    /// By the name that workloads use.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gelu" => Self::Gelu,
            "gelu_tanh" => Self::GeluTanh,
            "swiglu" => Self::SwiGlu,
            "geglu" => Self::GeGlu,
            _ => return None,
        })
    }
}

impl Gate {
    /// By the name of its unit.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "silu" => Self::Silu,
            "gelu_tanh" => Self::GeluTanh,
            "gelu" => Self::Gelu,
            _ => return None,
        })
    }
}
