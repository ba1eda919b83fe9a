//! FlashInfer's CUDA kernels for RMSNorm, fused add + RMSNorm and LayerNorm, forward.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Tensors,
};
use elementwise::{Dtype, Norm, NormOp as Kernel};
use numeric::DType;
use workloads::{NormOp, NormProblem};

/// The kernels multiply row and width in 32 bits, LayerNorm's in signed ones.
const MAX_ELEMENTS: usize = 1 << 32;
const MAX_LAYERNORM_ELEMENTS: usize = 1 << 31;

pub fn contenders() -> Contenders<NormProblem> {
    let region =
        "one kernel; the fused add works in place, as the op does, so that kernel and op are \
                  the same";
    let wheel = Some(elementwise::WHEEL_SHA256.to_owned());
    vec![contender(
        Identity::baseline("flashinfer_cuda", elementwise::VERSION, wheel, region),
        DeviceKind::Cuda,
        |problem, device| unsupported(problem, device.shared_bytes_per_block as usize),
        bind,
    )]
}

/// The library's kernel for an op, if it has one.
fn kernel(op: NormOp) -> Result<Kernel, String> {
    Ok(match op {
        NormOp::RmsNormForward => Kernel::RmsNorm,
        NormOp::FusedAddRmsNorm => Kernel::FusedAddRmsNorm,
        NormOp::LayerNormForward => Kernel::LayerNorm,
        other => return Err(format!("FlashInfer lacks {other}")),
    })
}

fn dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::F16 => Some(Dtype::F16),
        DType::Bf16 => Some(Dtype::Bf16),
        _ => None,
    }
}

fn bind(problem: &NormProblem, tensors: &Tensors, _device: &DeviceInfo) -> Binding {
    let activation = problem.types.activation;
    let refuse = || ContenderError::new(format!("{activation} activations are not supported"));
    let address = |name| tensors.address_or_null(name);
    let norm = Norm {
        op: kernel(problem.op).map_err(ContenderError::new)?,
        dtype: dtype(activation).ok_or_else(refuse)?,
        rows: problem.shape.rows,
        columns: problem.shape.columns,
        epsilon: problem.epsilon,
        x: address("x"),
        residual: address("residual"),
        weight: address("weight"),
        bias: address("bias"),
        out: address("out"),
    };
    Ok(bound(Facts::new(), move |stream| {
        elementwise::norm(&norm, stream)
    }))
}

/// Why the library's own entry points would reject a problem.
fn unsupported(problem: &NormProblem, shared_bytes: usize) -> Option<String> {
    let (types, columns) = (problem.types, problem.shape.columns);
    let kernel = match kernel(problem.op) {
        Ok(kernel) => kernel,
        Err(reason) => return Some(reason),
    };
    let most = match kernel {
        Kernel::LayerNorm => MAX_LAYERNORM_ELEMENTS,
        _ => MAX_ELEMENTS,
    };
    // Shared memory per row.
    let (typed, row_bytes) = match kernel {
        // The row follows one slot for each of up to 32 warps.
        Kernel::FusedAddRmsNorm => (half_of_one_type(problem), 4 * (32 + columns)),
        Kernel::LayerNorm => (
            (types.activation, types.weight) == (DType::Bf16, DType::F32),
            2 * columns,
        ),
        _ => (half_of_one_type(problem), 0),
    };
    if !typed {
        Some(format!(
            "no {} activations with {} weights; rmsnorm takes f16 or bf16 with weights of the \
             same type, layernorm bf16 with f32",
            types.activation, types.weight
        ))
    } else if row_bytes > shared_bytes {
        Some(format!(
            "{columns} columns take {row_bytes} bytes of shared memory; a block has {shared_bytes}"
        ))
    } else if problem.shape.rows > most / columns {
        Some(format!(
            "{} elements; its offsets are 32 bits wide",
            problem.shape
        ))
    } else {
        None
    }
}

fn half_of_one_type(problem: &NormProblem) -> bool {
    let types = problem.types;
    matches!(types.activation, DType::F16 | DType::Bf16) && types.weight == types.activation
}
