//! Races the memory-bound row operations: RMSNorm, LayerNorm, softmax and cross-entropy.

mod norms;

use std::process::ExitCode;

use cli::{Bench, Choices, Shortcut, UsageError};
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
        problems,
        contenders: |choices| norms::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<NormProblem>, UsageError> {
    let mut problems = Vec::new();
    for op in NormOp::all().filter(|op| is_chosen(*op, choices)) {
        for (shape, workload) in workloads_of(op, choices)? {
            for &activation in &choices.dtypes {
                let weight = choices.weight_dtype.resolve(activation);
                let types = NormTypes { activation, weight };
                problems.push(NormProblem::new(op, shape, types, workload.clone()));
            }
        }
    }
    Ok(problems)
}

fn is_chosen(op: NormOp, choices: &Choices) -> bool {
    if op.is_backward() {
        choices.passes.backward()
    } else {
        choices.passes.forward()
    }
}

fn workloads_of(
    op: NormOp,
    choices: &Choices,
) -> Result<Vec<(RowShape, contender::Workload)>, UsageError> {
    let mut workloads = Vec::new();
    for suite in choices.suites_of::<NormSuite>()? {
        workloads.extend(suite.workloads(op));
    }
    for config in &choices.configs {
        let [rows, columns] = config[..] else {
            return Err(UsageError::of_shape(
                config,
                "is no shape of rows; write ROWSxCOLUMNS, like 4096x7168",
            ));
        };
        workloads.push(NormSuite::custom(RowShape { rows, columns }));
    }
    Ok(workloads)
}
