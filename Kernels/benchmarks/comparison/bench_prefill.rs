//! Races attention over whole prompts: batches of sequences of any lengths, with or without cached
//! prefixes.

mod prefill;

use std::process::ExitCode;

use cli::{Bench, Choices, UsageError};
use contender::Workload;
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_prefill",
        about: "Races kernels for variable-length prefill attention. \
                --configs takes BxQxKVxHxHKVxD: batch, queries and keys of each sequence, heads, \
                kv heads, head dim; causal",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: PrefillSuite::SUITES,
        shortcuts: &[],
        problems,
        contenders: |choices| prefill::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<PrefillProblem>, UsageError> {
    if !choices.passes.forward() {
        return Err(UsageError::new(
            "prefill has no backward pass; use --mode fwd",
        ));
    }
    let mut problems = Vec::new();
    for (op, shape, workload) in workloads_of(choices)? {
        for &dtype in &choices.dtypes {
            let problem = PrefillProblem::new(op, shape.clone(), dtype, workload.clone());
            problems.push(problem.map_err(UsageError::new)?);
        }
    }
    Ok(problems)
}

fn workloads_of(choices: &Choices) -> Result<Vec<(PrefillOp, PrefillShape, Workload)>, UsageError> {
    let mut all = Vec::new();
    for suite in choices.suites_of::<PrefillSuite>()? {
        for &op in suite.ops() {
            let workloads = suite.workloads().into_iter();
            all.extend(workloads.map(|(shape, workload)| (op, shape, workload)));
        }
    }
    for config in &choices.configs {
        let sizes: [usize; 6] = config[..].try_into().map_err(|_| {
            UsageError::of_shape(
                config,
                "is no batch; write BxQxKVxHxHKVxD, like 2x4096x8192x32x8x128",
            )
        })?;
        let (shape, workload) = PrefillSuite::from_sizes(sizes).map_err(UsageError::new)?;
        all.push((PrefillOp::Prefill, shape, workload));
    }
    Ok(all)
}
