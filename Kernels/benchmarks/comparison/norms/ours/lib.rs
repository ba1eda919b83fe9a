//! Our kernels.

use contender::{ContenderError, Contenders, Problem, Tensors};
use norms::{Norm, Tensor};
use our_contender::{dtype, Ours};
use workloads::NormProblem;

pub fn contenders() -> Contenders<NormProblem> {
    let family = Ours {
        timed: "all kernels of the op; weight gradients with their final sum",
        obstacle: |_, _| None,
        op,
        check: norms::check,
        plan: norms::plan,
    };
    vec![family.ours(), family.plain()]
}

fn op(problem: &NormProblem, tensors: &Tensors) -> Result<Norm, ContenderError> {
    let names = problem.tensors().iter().map(|spec| spec.name);
    let tensor = |name: &str| Tensor {
        name: name.to_owned(),
        address: tensors.address_or_null(name),
    };
    Ok(Norm {
        op: problem.op.to_string(),
        rows: problem.shape.rows,
        columns: problem.shape.columns,
        dtype: dtype(problem.types.activation)?,
        weight_dtype: dtype(problem.types.weight)?,
        epsilon: problem.epsilon,
        tensors: names.map(tensor).collect(),
    })
}
