//! Races decode with multi-head latent attention: all heads share one cache of latent rows.

mod mla_decode;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use contender::Workload;
use workloads::{MlaDecodeProblem, MlaShape, MlaSuite};

const SUITES: [Suite; 4] = [
    Suite {
        name: "dsv3",
        about: "DeepSeek-V3: 128 heads, or 16 of them, pages of 64",
    },
    Suite {
        name: "kimi",
        about: "Kimi K2: 64 heads, 8k to 128k tokens, pages of 32",
    },
    Suite {
        name: "long_tail",
        about: "batches of many short and a few long sequences",
    },
    Suite {
        name: "smoke",
        about: "small shapes and edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_mla_decode",
        about: "Races decode kernels of multi-head latent attention",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| mla_decode::contenders(choices.device),
    })
}

#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<MlaDecodeProblem>>, UsageError> {
    let mut workloads: Vec<(MlaShape, Workload)> = Vec::new();
    for name in &choices.suites {
        let suite: MlaSuite = name.parse().map_err(UsageError::new)?;
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let shape = custom(config)?;
        let workload = MlaSuite::custom(&shape);
        workloads.push((shape, workload));
    }
    let problem = |(shape, workload): &(MlaShape, Workload), dtype| {
        Box::new(MlaDecodeProblem::new(
            shape.clone(),
            dtype,
            workload.clone(),
        ))
    };
    Ok(workloads
        .iter()
        .flat_map(|entry| {
            choices
                .dtypes
                .iter()
                .map(move |&dtype| problem(entry, dtype))
        })
        .collect())
}

fn custom(config: &[usize]) -> Result<MlaShape, UsageError> {
    let (page_size, q_len) = match config {
        [_, _, _] => (64, 1),
        [_, _, _, page_size] => (*page_size, 1),
        [_, _, _, page_size, q_len] => (*page_size, *q_len),
        _ => (0, 0),
    };
    if page_size == 0 || config[0].saturating_mul(config[1]) > 1 << 30 {
        let text: Vec<String> = config.iter().map(usize::to_string).collect();
        return Err(UsageError::new(format!(
            "'{}' is no shape of latent attention with at most 2^30 tokens; write \
             BATCHxTOKENSxHEADS[xPAGE_SIZE[xNEW_TOKENS]], like 16x8192x128",
            text.join("x")
        )));
    }
    Ok(MlaShape {
        lengths: vec![config[1]; config[0]],
        q_len,
        heads: config[2],
        page_size,
    })
}
