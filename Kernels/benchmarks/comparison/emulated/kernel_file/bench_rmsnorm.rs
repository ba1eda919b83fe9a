//! One problem with our kernel alone, to which a test adds others: few kernels to compile, for the interpreter.

use std::process::ExitCode;

use cli::Bench;
use contender::{ContenderError, Contenders, Problem, Tensors};
use norms::{Norm, Tensor};
use numeric::DType;
use our_contender::{dtype, Ours};
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_rmsnorm",
        about: "Races RMSNorm on a small problem",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: NormSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16],
        problems: |_| Ok(vec![problem()]),
        contenders: |_| contenders(),
    })
}

fn problem() -> NormProblem {
    let (rows, columns) = (3, 320);
    let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
    let types = NormTypes {
        activation: DType::Bf16,
        weight: DType::Bf16,
    };
    NormProblem::new(NormOp::RmsNormForward, shape, types, workload)
}

fn contenders() -> Contenders<NormProblem> {
    let family = Ours {
        timed: "the kernel",
        obstacle: |_, _| None,
        op,
        check: norms::check,
        plan: norms::plan,
    };
    vec![family.ours()]
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
