//! Races native sparse attention: its three branches, their gated sum, and dense attention on the same
//! shapes.

mod cpu_contender;
mod nsa_ops;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use nsa_ops::SparseOrDense;
use workloads::{NsaOp, NsaProblem, NsaShape, NsaSuite};

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
        about: "Races kernels for native sparse attention, and dense attention on its shapes",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| nsa_ops::contenders(choices.device),
    })
}

/// Forward only: nothing for a backward run.
#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<SparseOrDense>>, UsageError> {
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
        for &dtype in &choices.dtypes {
            for op in NsaOp::ALL {
                let problem = NsaProblem::new(op, shape, dtype, workload.clone());
                problems.push(Box::new(SparseOrDense::Sparse(problem)));
            }
            let dense = SparseOrDense::dense(shape, dtype, workload.clone());
            problems.push(Box::new(dense.map_err(UsageError::new)?));
        }
    }
    Ok(problems)
}
