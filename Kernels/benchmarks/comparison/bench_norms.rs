//! Races the memory-bound row operations: RMSNorm, LayerNorm, softmax and cross-entropy.

mod norms;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

const SUITES: [Suite; 4] = [
    Suite {
        name: "quack",
        about: "batch x sequence of Quack's suite, hidden 4096",
    },
    Suite {
        name: "dsv3",
        about: "prefill rows at hidden sizes around DeepSeek-V3's",
    },
    Suite {
        name: "decode",
        about: "1 to 2048 rows at hidden sizes of models",
    },
    Suite {
        name: "smoke",
        about: "small shapes and edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_norms",
        about: "Races RMSNorm, fused add + RMSNorm, LayerNorm, softmax and cross-entropy kernels",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| norms::contenders(choices.device),
    })
}

#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<NormProblem>>, UsageError> {
    let mut problems = Vec::new();
    for op in NormOp::all().filter(|op| is_chosen(*op, choices)) {
        for (shape, workload) in workloads_of(op, choices)? {
            for &activation in &choices.dtypes {
                let weight = choices.weight_dtype.resolve(activation);
                let types = NormTypes { activation, weight };
                problems.push(Box::new(NormProblem::new(
                    op,
                    shape,
                    types,
                    workload.clone(),
                )));
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
    for name in &choices.suites {
        let suite: NormSuite = name.parse().map_err(UsageError::new)?;
        workloads.extend(suite.workloads(op));
    }
    for config in &choices.configs {
        let [rows, columns] = config[..] else {
            let text: Vec<String> = config.iter().map(usize::to_string).collect();
            return Err(UsageError::new(format!(
                "'{}' is no shape of rows; write ROWSxCOLUMNS, like 4096x7168",
                text.join("x")
            )));
        };
        workloads.push(NormSuite::custom(RowShape { rows, columns }));
    }
    Ok(workloads)
}
