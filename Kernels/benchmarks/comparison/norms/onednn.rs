//! oneDNN's LayerNorm and softmax on the CPU; see Kernels/baselines/onednn/README.md.

use contender::{Binding, ContenderError, Contenders, Tensors};
use host::Element;
use numeric::DType;
use onednn::{Operation, Rows};
use onednn_contender::{contender, data_type, Operands};
use shared::cpu::{bf16, f16};
use shared::memory::Memory;
use workloads::{NormOp, NormProblem};

pub fn contenders() -> Contenders<NormProblem> {
    let region = "one primitive on as many threads as ours; weights and their gradients converted \
                  from and to f32, saved rstd to variance";
    vec![contender(region, operation, bind)]
}

fn operation(problem: &NormProblem) -> Result<Operation, String> {
    let of = Rows {
        rows: problem.shape.rows,
        columns: problem.shape.columns,
        dtype: data_type(problem.types.activation)?,
    };
    if problem.op.has_weight() {
        data_type(problem.types.weight)?;
    }
    Ok(match problem.op {
        NormOp::LayerNormForward => Operation::LayerNorm(of, problem.epsilon),
        NormOp::LayerNormBackward => Operation::LayerNormBackward(of, EPSILON),
        NormOp::SoftmaxForward => Operation::Softmax(of),
        NormOp::SoftmaxBackward => Operation::SoftmaxBackward(of),
        other => return Err(format!("the lock's oneDNN has no primitive for {other}")),
    })
}

/// Added to the variance before its root. The problem saves rstd, so any small number will do here.
const EPSILON: f32 = 1e-5;

fn bind(problem: &NormProblem, tensors: &Tensors) -> Binding {
    match problem.types.weight {
        DType::F16 => bind_weights::<f16>(problem, tensors),
        DType::Bf16 => bind_weights::<bf16>(problem, tensors),
        _ => bind_weights::<f32>(problem, tensors),
    }
}

fn bind_weights<W: Element>(problem: &NormProblem, tensors: &Tensors) -> Binding {
    // SAFETY: on the CPU the harness's buffers are host memory, aligned to 256 bytes, and outlive
    // what is bound to them; while it runs, the harness does not touch them.
    let memory = unsafe { Memory::new(tensors) };
    let mut operands = Operands::new(tensors);
    match problem.op {
        NormOp::LayerNormForward => {
            operands.tensor("x")?;
            operands.widened::<W>(memory.read("weight")?);
            operands.widened::<W>(memory.read("bias")?);
            operands.tensor("out")?;
        }
        NormOp::LayerNormBackward => {
            operands.tensor("x")?;
            operands.widened::<W>(memory.read("weight")?);
            operands.zeros(problem.shape.columns);
            operands.tensor("out_gradient")?;
            operands.tensor("mean")?;
            operands.computed(memory.read::<f32>("rstd")?, variance);
            operands.tensor("x_gradient")?;
            operands.narrowed::<W>(memory.write("weight_gradient")?);
            operands.narrowed::<W>(memory.write("bias_gradient")?);
        }
        NormOp::SoftmaxForward => operands.tensors(["x", "out"])?,
        NormOp::SoftmaxBackward => operands.tensors(["out", "out_gradient", "x_gradient"])?,
        other => return Err(ContenderError::new(format!("no primitive for {other}"))),
    }
    let operation = operation(problem).map_err(ContenderError::new)?;
    // SAFETY: as above; the operation has the shapes and types of these tensors.
    unsafe { operands.bind(&operation) }
}

/// What gives this rstd.
fn variance(rstd: &[f32], variance: &mut [f32]) {
    for (variance, rstd) in variance.iter_mut().zip(rstd) {
        *variance = 1.0 / (rstd * rstd) - EPSILON;
    }
}
