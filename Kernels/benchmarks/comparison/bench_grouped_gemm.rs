//! Races grouped matrix products: the experts of mixture-of-experts layers, bf16 and FP8.

mod gemm;

use std::process::ExitCode;

use cli::{Bench, Choices, UsageError};
use workloads::{GemmProblem, GroupedGemmSuite};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_grouped_gemm",
        about: "Races grouped matrix products; FP8 operands have block scales and come quantised",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: GroupedGemmSuite::SUITES,
        shortcuts: &[],
        problems,
        contenders: |choices| gemm::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<GemmProblem>, UsageError> {
    let mut workloads = Vec::new();
    for suite in choices.suites_of::<GroupedGemmSuite>()? {
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let [groups, each, n, k] = config[..] else {
            return Err(UsageError::of_shape(
                config,
                "is no grouped product; write GROUPSxROWSxNxK, like 8x4096x4096x7168",
            ));
        };
        workloads.push(GroupedGemmSuite::custom(groups, each, n, k));
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
