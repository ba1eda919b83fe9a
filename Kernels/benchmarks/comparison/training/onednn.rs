//! oneDNN's GELU on the CPU.

use contender::{Binding, ContenderError, Contenders, Problem, Tensors};
use onednn::{Curve, Operation, Rows};
use onednn_contender::{contender, data_type, Operands};
use workloads::{Activation, Pass, TrainingOp, TrainingProblem, TrainingShape};

pub fn contenders() -> Contenders<TrainingProblem> {
    let region = "one primitive on as many threads as ours";
    vec![contender(region, operation, bind)]
}

fn operation(problem: &TrainingProblem) -> Result<Operation, String> {
    let missing = || format!("the lock's oneDNN has no primitive for {}", problem.op);
    let (TrainingOp::Activation(activation, pass), TrainingShape::Rows(shape)) =
        (problem.op, problem.shape)
    else {
        return Err(missing());
    };
    let of = Rows {
        rows: shape.rows,
        columns: shape.columns,
        dtype: data_type(problem.dtype())?,
    };
    let curve = match activation {
        Activation::Gelu => Curve::GeluErf,
        Activation::GeluTanh => Curve::GeluTanh,
        Activation::SwiGlu | Activation::GeGlu => return Err(missing()),
    };
    Ok(match pass {
        Pass::Forward => Operation::Elementwise(curve, of),
        Pass::Backward => Operation::ElementwiseBackward(curve, of),
    })
}

fn bind(problem: &TrainingProblem, tensors: &Tensors) -> Binding {
    let operation = operation(problem).map_err(ContenderError::new)?;
    let mut operands = Operands::new(tensors);
    match operation {
        Operation::Elementwise(..) => operands.tensors(["x", "out"])?,
        _ => operands.tensors(["x", "out_gradient", "x_gradient"])?,
    }
    // SAFETY: on the CPU the harness's buffers are host memory that outlives what is bound to them,
    // with the problem's shapes and types; while it runs, the harness does not touch them.
    unsafe { operands.bind(&operation) }
}
