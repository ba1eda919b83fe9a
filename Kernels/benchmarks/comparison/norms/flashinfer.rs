//! FlashInfer's CUDA kernels for RMSNorm, fused add + RMSNorm and LayerNorm, forward.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use flashinfer::{Dtype, FusedAddRmsNorm, LayerNorm, Matrix, RmsNorm};
use numeric::DType;
use workloads::{NormOp, NormProblem};

/// The kernels multiply row and width in 32 bits, LayerNorm's with a sign.
const MAX_ELEMENTS: usize = 1 << 32;
const MAX_LAYERNORM_ELEMENTS: usize = 1 << 31;

struct FlashInferNorms {
    identity: Identity,
}

pub fn contender() -> Box<dyn Contender<NormProblem>> {
    Box::new(FlashInferNorms {
        identity: Identity {
            name: "flashinfer_cuda".to_owned(),
            kind: Kind::Baseline,
            version: flashinfer::VERSION.to_owned(),
            artifact_sha256: Some(flashinfer::WHEEL_SHA256.to_owned()),
            libraries: Vec::new(),
            timed_region: "one kernel; the fused add works in place, as the op asks, so that \
                           kernel and op are the same"
                .to_owned(),
        },
    })
}

impl Contender<NormProblem> for FlashInferNorms {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        match unsupported(problem, device.shared_bytes_per_block as usize) {
            Some(reason) => Support::No(reason),
            None => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let dtype = match problem.types.activation {
            DType::F16 => Dtype::F16,
            DType::Bf16 => Dtype::Bf16,
            other => return Err(ContenderError::new(format!("no {other} activations"))),
        };
        Ok(Box::new(BoundNorms {
            op: op(problem, buffers)?,
            matrix: Matrix {
                rows: problem.shape.rows,
                columns: problem.shape.columns,
                dtype,
            },
        }))
    }
}

/// Why the library's own entry points would not take a problem.
fn unsupported(problem: &NormProblem, shared_bytes: usize) -> Option<String> {
    let (types, columns) = (problem.types, problem.shape.columns);
    let most = match problem.op {
        NormOp::LayerNormForward => MAX_LAYERNORM_ELEMENTS,
        _ => MAX_ELEMENTS,
    };
    // What a row takes in shared memory.
    let (typed, row_bytes) = match problem.op {
        NormOp::RmsNormForward => (half_of_one_type(problem), 0),
        // A slot for each of at most 32 warps precedes the row.
        NormOp::FusedAddRmsNorm => (half_of_one_type(problem), 4 * (32 + columns)),
        NormOp::LayerNormForward => (
            (types.activation, types.weight) == (DType::Bf16, DType::F32),
            2 * columns,
        ),
        other => return Some(format!("FlashInfer has no {other}")),
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

enum Op {
    Rms(RmsNorm),
    FusedAddRms(FusedAddRmsNorm),
    Layer(LayerNorm),
}

/// Numbers are places in the problem's list of tensors.
fn op(problem: &NormProblem, buffers: &[Buffer]) -> Result<Op, ContenderError> {
    let at = |tensor: usize| buffers[tensor].address;
    let epsilon = problem.epsilon;
    Ok(match problem.op {
        NormOp::RmsNormForward => Op::Rms(RmsNorm {
            x: at(0),
            weight: at(1),
            out: at(2),
            epsilon,
        }),
        NormOp::FusedAddRmsNorm => Op::FusedAddRms(FusedAddRmsNorm {
            x: at(0),
            residual: at(1),
            weight: at(2),
            epsilon,
        }),
        NormOp::LayerNormForward => Op::Layer(LayerNorm {
            x: at(0),
            weight: at(1),
            bias: at(2),
            out: at(3),
            epsilon,
        }),
        other => return Err(ContenderError::new(format!("FlashInfer has no {other}"))),
    })
}

struct BoundNorms {
    op: Op,
    matrix: Matrix,
}

impl Bound for BoundNorms {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        match &self.op {
            Op::Rms(op) => flashinfer::rmsnorm(op, &self.matrix, stream),
            Op::FusedAddRms(op) => flashinfer::fused_add_rmsnorm(op, &self.matrix, stream),
            Op::Layer(op) => flashinfer::layernorm(op, &self.matrix, stream),
        }
        .map_err(ContenderError::new)
    }
}
