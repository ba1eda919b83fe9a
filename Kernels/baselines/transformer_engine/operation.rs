//! Operations that are ready to be enqueued.

use cxx::UniquePtr;

use crate::ffi::{self, Signature};
use crate::{library, Tensor};

/// The values of NVTEDType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    F32 = 4,
    F16 = 5,
    Bf16 = 6,
}

/// Tensors are given in the order of the signature; norms take an epsilon (only forward) and the number of
/// multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// x, weight, out, rstd.
    RmsNormForward,
    /// out_gradient, x, rstd, weight, x_gradient, weight_gradient.
    RmsNormBackward,
    /// x, weight, bias, out, mean, rstd.
    LayerNormForward,
    /// out_gradient, x, mean, rstd, weight, x_gradient, weight_gradient, bias_gradient.
    LayerNormBackward,
    /// With tanh, like the two below; x, out.
    Gelu,
    /// out_gradient, x, x_gradient.
    GeluBackward,
    /// Rows of a gate and an up side by side; x, out.
    GeGlu,
    /// The same.
    SwiGlu,
}

impl Function {
    pub(crate) fn symbol(self) -> &'static [u8] {
        match self {
            Function::RmsNormForward => b"nvte_rmsnorm_fwd\0",
            Function::RmsNormBackward => b"nvte_rmsnorm_bwd\0",
            Function::LayerNormForward => b"nvte_layernorm_fwd\0",
            Function::LayerNormBackward => b"nvte_layernorm_bwd\0",
            Function::Gelu => b"nvte_gelu\0",
            Function::GeluBackward => b"nvte_dgelu\0",
            Function::GeGlu => b"nvte_geglu\0",
            Function::SwiGlu => b"nvte_swiglu\0",
        }
    }

    fn signature(self) -> Signature {
        match self {
            Function::RmsNormForward => Signature::RmsNormForward,
            Function::RmsNormBackward => Signature::RmsNormBackward,
            Function::LayerNormForward => Signature::LayerNormForward,
            Function::LayerNormBackward => Signature::LayerNormBackward,
            Function::Gelu | Function::GeGlu | Function::SwiGlu => Signature::Unary,
            Function::GeluBackward => Signature::Gradient,
        }
    }
}

/// A function with its tensors, and kernels that are compiled.
pub struct Prepared {
    operation: UniquePtr<ffi::Operation>,
    workspace_bytes: usize,
}

impl Prepared {
    pub fn new(
        function: Function,
        tensors: &[Tensor],
        epsilon: f32,
        multiprocessors: u32,
    ) -> Result<Self, String> {
        let functions = library()?.functions(function)?;
        let prepared = || {
            let operation = ffi::prepare(
                &functions,
                function.signature(),
                tensors,
                epsilon,
                multiprocessors as i32,
            )?;
            let workspace_bytes = operation.workspace_bytes()?;
            Ok(Self {
                operation,
                workspace_bytes,
            })
        };
        prepared().map_err(|error: cxx::Exception| error.to_string())
    }

    /// To be allocated by the caller unless 0, and set before the first launch.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    pub fn set_workspace(&self, address: usize) -> Result<(), cxx::Exception> {
        self.operation.set_workspace(address, self.workspace_bytes)
    }

    pub fn enqueue(&self, stream: usize) -> Result<(), cxx::Exception> {
        self.operation.enqueue(stream)
    }
}
