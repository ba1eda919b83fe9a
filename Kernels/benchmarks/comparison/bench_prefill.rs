//! Races attention over whole prompts: batches of sequences of any length, with or without cached
//! prefixes.

use std::process::ExitCode;

use cli::{Bench, Choices, DType, UsageError};
use workloads::{PrefillOp, PrefillProblem, PrefillSuite, LIST_MAX};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_prefill",
        about: "Races variable-length prefill attention kernels. \
                --configs takes BxQxKVxHxHKVxD: batch, queries and keys of each sequence, heads, \
                kv heads, head dim, and as a seventh size that of the values if it differs; causal",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: PrefillSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |choices| prefill_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<PrefillProblem>, UsageError> {
    if !choices.passes.forward() {
        return Err(UsageError::new(
            "prefill has no backward pass; use --mode fwd",
        ));
    }
    let of_suite = |suite: PrefillSuite| {
        let of_op = |&op: &PrefillOp| {
            let workloads = suite.drawn(choices.shapes_seed).into_iter();
            workloads.map(move |(shape, workload)| (op, shape, workload))
        };
        suite.ops().iter().flat_map(of_op).collect()
    };
    let workloads = choices.workloads(of_suite, |sizes| {
        let what = "is not a prefill of at most 4096 sequences; write BxQxKVxHxHKVxD, like \
                    2x4096x8192x32x8x128, or BxQxKVxHxHKVxDxDV, like 1x4096x4096x128x128x192x128";
        let refused = || UsageError::of_shape(sizes, what);
        let (six, value_dim) = sizes.split_first_chunk::<6>().ok_or_else(refused)?;
        if six[0] > LIST_MAX || value_dim.len() > 1 {
            return Err(refused());
        }
        let value_dim = value_dim.first().copied();
        let (shape, workload) =
            PrefillSuite::from_sizes(*six, value_dim).map_err(UsageError::new)?;
        Ok((PrefillOp::Prefill, shape, workload))
    })?;
    choices.problems(workloads, |(op, shape, workload), dtype| {
        PrefillProblem::new(*op, shape.clone(), dtype, workload.clone())
    })
}
