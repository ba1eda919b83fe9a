//! Races attention over whole prompts: batches of sequences of any lengths, with or without cached
//! prefixes.

mod prefill;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use contender::Workload;
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

const SUITES: [Suite; 8] = [
    Suite {
        name: "modular",
        about: "2 sequences of 2048 or 4096, 0 to 8192 cached; 32 heads, 4 kv heads, d 128",
    },
    Suite {
        name: "llama-8b",
        about: "one prompt of 1k to 32k, heads of Llama 3 8B (32, 8 kv, d 128)",
    },
    Suite {
        name: "llama-70b",
        about: "one prompt of 1k to 32k, heads of Llama 3 70B (64, 8 kv, d 128)",
    },
    Suite {
        name: "llama-405b",
        about: "one prompt of 1k to 32k, heads of Llama 3 405B (128, 8 kv, d 128)",
    },
    Suite {
        name: "qwen",
        about: "one prompt of 1k to 32k, heads of Qwen2.5 7B (28, 4 kv, d 128)",
    },
    Suite {
        name: "small",
        about: "1 to 32 sequences of 128 or 256, 1 to 8 heads, d 64, no mask",
    },
    Suite {
        name: "ragged",
        about: "batches with seeded log-normal lengths, heads of Llama 3 8B",
    },
    Suite {
        name: "smoke",
        about: "small shapes and edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_prefill",
        about: "Races kernels for variable-length prefill attention. \
                --configs takes BxQxKVxHxHKVxD: batch, queries and keys of each sequence, heads, \
                kv heads, head dim; causal",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| prefill::contenders(choices.device),
    })
}

#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<PrefillProblem>>, UsageError> {
    if !choices.passes.forward() {
        return Err(UsageError::new(
            "prefill has no backward pass; use --mode fwd",
        ));
    }
    let mut problems = Vec::new();
    for (op, shape, workload) in workloads_of(choices)? {
        for &dtype in &choices.dtypes {
            let problem = PrefillProblem::new(op, shape.clone(), dtype, workload.clone())
                .map_err(UsageError::new)?;
            problems.push(Box::new(problem));
        }
    }
    Ok(problems)
}

fn workloads_of(choices: &Choices) -> Result<Vec<(PrefillOp, PrefillShape, Workload)>, UsageError> {
    let mut all = Vec::new();
    for name in &choices.suites {
        let suite: PrefillSuite = name.parse().map_err(UsageError::new)?;
        for &op in suite.ops() {
            let workloads = suite.workloads().into_iter();
            all.extend(workloads.map(|(shape, workload)| (op, shape, workload)));
        }
    }
    for config in &choices.configs {
        let sizes: [usize; 6] = config[..].try_into().map_err(|_| {
            let text: Vec<String> = config.iter().map(usize::to_string).collect();
            UsageError::new(format!(
                "'{}' is no batch; write BxQxKVxHxHKVxD, like 2x4096x8192x32x8x128",
                text.join("x")
            ))
        })?;
        let (shape, workload) = PrefillSuite::from_sizes(sizes).map_err(UsageError::new)?;
        all.push((PrefillOp::Prefill, shape, workload));
    }
    Ok(all)
}
