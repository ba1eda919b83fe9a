//! Shared by the bridges to our kernels; each re-exports these types.

#[cxx::bridge(namespace = "device")]
mod ffi {
    /// The type of a tensor's elements.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    enum Dtype {
        F32,
        F16,
        Bf16,
        E4m3,
        Mxfp8,
        Nvfp4,
        Mxfp4,
        Fp8Ue8m0,
    }

    /// Which of an operation's kernels.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    enum Variant {
        /// The one that suits the shape and the device best.
        Tuned,
        /// The one that runs on every architecture.
        Portable,
        /// Nothing clever: the reference for whole tensors.
        Plain,
    }

    unsafe extern "C++" {
        include!("Kernels/bridge/plan.h");

        type Dtype;
        type Variant;

        /// An operation on given tensors, with everything it keeps in device memory; freed on drop.
        type Plan;

        /// Returns at once; launch failures become errors.
        ///
        /// # Safety
        /// `stream` is a CUDA stream of the current device, and the tensors that the plan was made
        /// for outlive the work on the stream.
        unsafe fn enqueue(self: &Plan, stream: usize) -> Result<()>;

        /// The choices made, as a JSON object.
        fn facts(self: &Plan) -> &CxxString;
    }

    impl UniquePtr<Plan> {}
}

pub use cxx::UniquePtr;
pub use ffi::{Dtype, Plan, Variant};

impl Dtype {
    /// By the name that workloads and results use.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "f32" => Self::F32,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "fp8_e4m3" => Self::E4m3,
            "mxfp8" => Self::Mxfp8,
            "nvfp4" => Self::Nvfp4,
            "mxfp4" => Self::Mxfp4,
            "fp8_ue8m0" => Self::Fp8Ue8m0,
            _ => return None,
        })
    }
}
