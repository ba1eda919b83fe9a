//! Races native sparse attention: its three branches, their gated sum, and dense attention on the same
//! shapes.

use std::process::ExitCode;

use cli::{Bench, Choices, DType, UsageError};
use nsa_contenders::SparseOrDense;
use workloads::{NsaOp, NsaProblem, NsaShape, NsaSuite};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_nsa",
        about: "Races native sparse attention kernels, and dense attention on the same shapes",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: NsaSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |choices| nsa_contenders::contenders(choices.device),
    })
}

/// Forward only: nothing to run for backward.
fn problems(choices: &Choices) -> Result<Vec<SparseOrDense>, UsageError> {
    let workloads = choices.workloads(
        |suite: NsaSuite| suite.drawn(choices.shapes_seed),
        |sizes| {
            let shape = NsaShape::from_sizes(sizes).map_err(UsageError::new)?;
            Ok(NsaSuite::custom(shape))
        },
    )?;
    if !choices.passes.forward() {
        return Err(UsageError::new(
            "bench_nsa has no backward pass; use --mode fwd",
        ));
    }
    let mut problems = Vec::new();
    for (shape, workload) in workloads {
        for &dtype in &choices.dtypes {
            for op in NsaOp::ALL {
                let (workload, seed) = (workload.clone(), choices.metadata_seed);
                let problem = NsaProblem::seeded(op, shape, dtype, workload, seed);
                problems.push(SparseOrDense::Sparse(problem));
            }
            let dense = SparseOrDense::dense(shape, dtype, workload.clone());
            problems.push(dense.map_err(UsageError::new)?);
        }
    }
    Ok(problems)
}
