//! Races dense matrix products with bf16, f16 and FP8 operands.

mod gemm;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use workloads::{GemmProblem, GemmSuite};

const SUITES: [Suite; 4] = [
    Suite {
        name: "square",
        about: "cubes of 512 to 16384",
    },
    Suite {
        name: "dsv3",
        about: "DeepSeek-V3's projections, decode and prefill rows",
    },
    Suite {
        name: "llama",
        about: "projections of Llama 3 8B and 70B",
    },
    Suite {
        name: "smoke",
        about: "small shapes; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_gemm",
        about: "Races dense matrix products; FP8 operands have block scales and come quantised",
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
        let suite: GemmSuite = name.parse().map_err(UsageError::new)?;
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let [m, n, k] = config[..] else {
            let text: Vec<String> = config.iter().map(usize::to_string).collect();
            return Err(UsageError::new(format!(
                "'{}' is no product; write MxNxK, like 4096x4096x7168",
                text.join("x")
            )));
        };
        workloads.push(GemmSuite::custom(m, n, k));
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
