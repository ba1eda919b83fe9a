//! Races grouped matrix products: the experts of mixture-of-experts layers, bf16 and FP8.

mod gemm;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use workloads::{GemmProblem, GroupedGemmSuite};

const SUITES: [Suite; 5] = [
    Suite {
        name: "prefill",
        about: "1024 to 8192 tokens an expert, even and uneven",
    },
    Suite {
        name: "decode",
        about: "16 or 32 tokens an expert, 1 to 256 experts",
    },
    Suite {
        name: "masked",
        about: "the same room for every expert, partly used",
    },
    Suite {
        name: "zipf",
        about: "few busy experts, some without tokens",
    },
    Suite {
        name: "smoke",
        about: "edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_grouped_gemm",
        about: "Races grouped matrix products; FP8 operands have block scales and come quantised",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| gemm::contenders(choices.device),
    })
}

#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<GemmProblem>>, UsageError> {
    let mut workloads = Vec::new();
    for name in &choices.suites {
        let suite: GroupedGemmSuite = name.parse().map_err(UsageError::new)?;
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let [groups, each, n, k] = config[..] else {
            let text: Vec<String> = config.iter().map(usize::to_string).collect();
            return Err(UsageError::new(format!(
                "'{}' is no grouped product; write GROUPSxROWSxNxK, like 8x4096x4096x7168",
                text.join("x")
            )));
        };
        workloads.push(GroupedGemmSuite::custom(groups, each, n, k));
    }
    let mut problems = Vec::new();
    for (shape, layout, workload) in workloads {
        for &dtype in &choices.dtypes {
            let problem = GemmProblem::new(shape, layout.clone(), dtype, workload.clone())
                .map_err(UsageError::new)?;
            problems.push(Box::new(problem));
        }
    }
    Ok(problems)
}
