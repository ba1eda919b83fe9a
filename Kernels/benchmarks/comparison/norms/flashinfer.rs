//! FlashInfer's CUDA kernels for RMSNorm, fused add + RMSNorm and LayerNorm, forward.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Tensors,
};
use flashinfer::{FusedAddRmsNorm, LayerNorm, Matrix, RmsNorm};
use flashinfer_contender::{dtype, identity};
use numeric::DType;
use workloads::{NormOp, NormProblem};

/// The kernels multiply row and width in 32 bits, LayerNorm's in signed ones.
const MAX_ELEMENTS: usize = 1 << 32;
const MAX_LAYERNORM_ELEMENTS: usize = 1 << 31;

pub fn contenders() -> Contenders<NormProblem> {
    let region =
        "one kernel; the fused add works in place, as the op does, so that kernel and op are \
                  the same";
    vec![contender(
        identity("flashinfer_cuda", region),
        DeviceKind::Cuda,
        |problem, device| unsupported(problem, device.shared_bytes_per_block as usize),
        bind,
    )]
}

fn bind(problem: &NormProblem, tensors: &Tensors, _device: &DeviceInfo) -> Binding {
    let activation = problem.types.activation;
    let refuse = || ContenderError::new(format!("{activation} activations are not supported"));
    let matrix = Matrix {
        rows: problem.shape.rows,
        columns: problem.shape.columns,
        dtype: dtype(activation).ok_or_else(refuse)?,
    };
    let (epsilon, none) = (problem.epsilon, Facts::new());
    Ok(match problem.op {
        NormOp::RmsNormForward => {
            let [x, weight, out] = tensors.addresses(["x", "weight", "out"])?;
            let op = RmsNorm {
                x,
                weight,
                out,
                epsilon,
            };
            bound(none, move |stream| {
                flashinfer::rmsnorm(&op, &matrix, stream)
            })
        }
        NormOp::FusedAddRmsNorm => {
            let [x, residual, weight] = tensors.addresses(["x", "residual", "weight"])?;
            let op = FusedAddRmsNorm {
                x,
                residual,
                weight,
                epsilon,
            };
            bound(none, move |stream| {
                flashinfer::fused_add_rmsnorm(&op, &matrix, stream)
            })
        }
        NormOp::LayerNormForward => {
            let [x, weight, bias, out] = tensors.addresses(["x", "weight", "bias", "out"])?;
            let op = LayerNorm {
                x,
                weight,
                bias,
                out,
                epsilon,
            };
            bound(none, move |stream| {
                flashinfer::layernorm(&op, &matrix, stream)
            })
        }
        other => return Err(ContenderError::new(format!("FlashInfer lacks {other}"))),
    })
}

/// Why the library's own entry points would reject a problem.
fn unsupported(problem: &NormProblem, shared_bytes: usize) -> Option<String> {
    let (types, columns) = (problem.types, problem.shape.columns);
    let most = match problem.op {
        NormOp::LayerNormForward => MAX_LAYERNORM_ELEMENTS,
        _ => MAX_ELEMENTS,
    };
    // Shared memory per row.
    let (typed, row_bytes) = match problem.op {
        NormOp::RmsNormForward => (half_of_one_type(problem), 0),
        // The row follows one slot for each of up to 32 warps.
        NormOp::FusedAddRmsNorm => (half_of_one_type(problem), 4 * (32 + columns)),
        NormOp::LayerNormForward => (
            (types.activation, types.weight) == (DType::Bf16, DType::F32),
            2 * columns,
        ),
        other => return Some(format!("FlashInfer lacks {other}")),
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
