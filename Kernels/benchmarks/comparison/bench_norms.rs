//! Races the memory-bound row operations: RMSNorm, LayerNorm, softmax and cross-entropy.

use std::convert::Infallible;
use std::process::ExitCode;

use cli::{Bench, Choices, DType, Shortcut, UsageError};
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_norms",
        about: "Races RMSNorm, fused add + RMSNorm, LayerNorm, softmax and cross-entropy kernels",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: NormSuite::SUITES,
        shortcuts: &[
            Shortcut {
                flag: "quack-suite",
                suite: "quack",
            },
            Shortcut {
                flag: "dsv3",
                suite: "dsv3",
            },
        ],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |choices| norms_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<NormProblem>, UsageError> {
    let mut problems = Vec::new();
    for op in NormOp::all().filter(|op| choices.passes.include(op.is_backward())) {
        let of_suite = |suite: NormSuite| suite.drawn(op, choices.shapes_seed);
        let workloads = choices.workloads(of_suite, |sizes| match *sizes {
            [rows, columns] => Ok(NormSuite::custom(RowShape { rows, columns })),
            _ => Err(UsageError::of_shape(
                sizes,
                "is not a row shape; write ROWSxCOLUMNS, like 4096x7168",
            )),
        })?;
        problems.extend(
            choices.problems(workloads, |(shape, workload), activation| {
                let weight = choices.weight_dtype.resolve(activation);
                let types = NormTypes { activation, weight };
                Ok::<_, Infallible>(NormProblem::new(op, *shape, types, workload.clone()))
            })?,
        );
    }
    Ok(problems)
}
