//! cuDNN's norm operations.

use contender::{Contenders, Problem};
use cudnn::{DataType, Graph, Norm, NormBackward, NormForward, NormKind};
use cudnn_contender::{contender, Operation};
use numeric::DType;
use workloads::{NormOp, NormProblem};

/// From here on the gradient of LayerNorm's weight is wrong (9.14: correct at half as many rows).
const LAYERNORM_BACKWARD_ROWS: usize = 1 << 21;

/// An operation in cuDNN's terms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Forward(NormForward),
    Backward(NormBackward),
}

pub fn contenders() -> Contenders<NormProblem> {
    vec![contender(Operation {
        timed_region: "all kernels of the plan; weight gradients with their final sum",
        // Tensors are in the order of the problem, which is also the plan's.
        arguments: |problem: &NormProblem| {
            let tensors = problem.tensors().iter();
            tensors.map(|tensor| tensor.name).collect()
        },
        of,
        graph,
    })]
}

fn of(problem: &NormProblem) -> Result<Op, String> {
    let (kind, forward) = match problem.op {
        NormOp::RmsNormForward => (NormKind::Rms, true),
        NormOp::RmsNormBackward => (NormKind::Rms, false),
        NormOp::LayerNormForward => (NormKind::Layer, true),
        NormOp::LayerNormBackward => (NormKind::Layer, false),
        other => return Err(format!("cuDNN does not have {other} as one operation")),
    };
    let rows = problem.shape.rows;
    if problem.op == NormOp::LayerNormBackward && rows >= LAYERNORM_BACKWARD_ROWS {
        return Err(format!(
            "{rows} rows; its weight's gradient is wrong from {LAYERNORM_BACKWARD_ROWS} on"
        ));
    }
    let norm = Norm {
        kind,
        rows,
        columns: problem.shape.columns,
        activation: data_type(problem.types.activation)?,
        weight: data_type(problem.types.weight)?,
    };
    let epsilon = problem.epsilon;
    Ok(match forward {
        true => Op::Forward(NormForward { norm, epsilon }),
        false => Op::Backward(NormBackward { norm }),
    })
}

fn graph(op: &Op) -> Result<Graph, cudnn::Error> {
    match op {
        Op::Forward(forward) => forward.graph(),
        Op::Backward(backward) => backward.graph(),
    }
}

fn data_type(dtype: DType) -> Result<DataType, String> {
    match dtype {
        DType::F32 => Ok(DataType::F32),
        DType::F16 => Ok(DataType::F16),
        DType::Bf16 => Ok(DataType::Bf16),
        other => Err(format!("{other} is not supported")),
    }
}
