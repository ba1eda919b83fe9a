//! Races native sparse attention: the branch that attends over selected blocks.

mod nsa_ops;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use workloads::{NsaProblem, NsaShape, NsaSuite, Selection};

const SUITES: [Suite; 3] = [
    Suite {
        name: "short",
        about: "256 to 2048 tokens, blocks of 32 and 64, 1 and 4 groups",
    },
    Suite {
        name: "long",
        about: "8 Ki to 64 Ki tokens, 16 blocks of 64, 64 heads in 4 groups",
    },
    Suite {
        name: "smoke",
        about: "small shapes and edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_nsa",
        about: "Races kernels for the selected-block branch of native sparse attention",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| nsa_ops::contenders(choices.device),
    })
}

/// Forward only: nothing for a backward run.
#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<NsaProblem>>, UsageError> {
    let mut workloads = Vec::new();
    for name in &choices.suites {
        let suite: NsaSuite = name.parse().map_err(UsageError::new)?;
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let shape = NsaShape::from_sizes(config).map_err(UsageError::new)?;
        workloads.push(NsaSuite::custom(shape));
    }
    if !choices.passes.forward() {
        return Err(UsageError::new(
            "bench_nsa has no backward pass; use --mode fwd",
        ));
    }
    let mut problems = Vec::new();
    for (shape, workload) in workloads {
        let selection = Selection::drawn(shape);
        for &dtype in &choices.dtypes {
            let problem = NsaProblem::new(selection.clone(), shape, dtype, workload.clone());
            problems.push(Box::new(problem));
        }
    }
    Ok(problems)
}
