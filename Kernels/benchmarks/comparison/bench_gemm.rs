//! Races dense matrix products with bf16, f16 and FP8 operands.

mod gemm;

use std::process::ExitCode;

use cli::{Bench, Choices, Shortcut, UsageError};
use workloads::{GemmProblem, GemmSuite};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_gemm",
        about: "Races dense matrix products; FP8 operands have block scales and come quantised",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: GemmSuite::SUITES,
        shortcuts: &[Shortcut {
            flag: "dsv3",
            suite: "dsv3",
        }],
        problems,
        contenders: |choices| gemm::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<GemmProblem>, UsageError> {
    let mut workloads = Vec::new();
    for suite in choices.suites_of::<GemmSuite>()? {
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let [m, n, k] = config[..] else {
            return Err(UsageError::of_shape(
                config,
                "is no product; write MxNxK, like 4096x4096x7168",
            ));
        };
        workloads.push(GemmSuite::custom(m, n, k));
    }
    let mut problems = Vec::new();
    for (shape, layout, workload) in workloads {
        for &dtype in &choices.dtypes {
            let problem = GemmProblem::new(shape, layout.clone(), dtype, workload.clone());
            problems.push(problem.map_err(UsageError::new)?);
        }
    }
    Ok(problems)
}
