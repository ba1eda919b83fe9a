//! Races decode attention over a paged cache: one or a few new tokens a sequence, with heads of the
//! queries that share those of the cache.

mod decode;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use contender::Workload;
use workloads::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType};

const SUITES: [Suite; 8] = [
    Suite {
        name: "modular",
        about: "Llama 3 8B, batch 1 to 128, pages of 128",
    },
    Suite {
        name: "llama",
        about: "Llama models, batch 1 to 256, 1k to 128k tokens, pages of 16",
    },
    Suite {
        name: "qwen",
        about: "Qwen models, batch 1 to 256, 4k to 128k tokens, pages of 64",
    },
    Suite {
        name: "long_tail",
        about: "batches of many short and a few long sequences",
    },
    Suite {
        name: "speculative",
        about: "2 to 8 new tokens a sequence",
    },
    Suite {
        name: "pages",
        about: "pages of 1 to 128 tokens in both layouts, heads of 64",
    },
    Suite {
        name: "fp8",
        about: "caches of FP8 with a scale, batch 1 to 256, 2k to 128k tokens",
    },
    Suite {
        name: "smoke",
        about: "small shapes and edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_decode",
        about: "Races decode attention kernels over a paged cache",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| decode::contenders(choices.device),
    })
}

#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<DecodeProblem>>, UsageError> {
    let mut workloads: Vec<(DecodeShape, Workload)> = Vec::new();
    for name in &choices.suites {
        let suite: DecodeSuite = name.parse().map_err(UsageError::new)?;
        workloads.extend(suite.workloads());
    }
    for config in &choices.configs {
        let shape = custom(config)?;
        let workload = DecodeSuite::custom(&shape);
        workloads.push((shape, workload));
    }
    let problem = |(shape, workload): &(DecodeShape, Workload), dtype| {
        Box::new(DecodeProblem::new(shape.clone(), dtype, workload.clone()))
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

fn custom(config: &[usize]) -> Result<DecodeShape, UsageError> {
    let text: Vec<String> = config.iter().map(usize::to_string).collect();
    let refuse = |why: &str| {
        Err(UsageError::new(format!(
            "'{}' {why}; write BATCHxTOKENSxHEADSxKV_HEADSxHEAD_DIM[xPAGE_SIZE[xNEW_TOKENS]], \
             like 16x8192x32x8x128",
            text.join("x")
        )))
    };
    let (page_size, q_len) = match config {
        [_, _, _, _, _] => (16, 1),
        [_, _, _, _, _, page_size] => (*page_size, 1),
        [_, _, _, _, _, page_size, q_len] => (*page_size, *q_len),
        _ => return refuse("is no shape of decode attention"),
    };
    if !config[2].is_multiple_of(config[3]) {
        return refuse("has heads that do not share those of the cache evenly");
    }
    if config[0].saturating_mul(config[1]) > 1 << 30 {
        return refuse("has more than 2^30 tokens");
    }
    Ok(DecodeShape {
        lengths: vec![config[1]; config[0]],
        q_len,
        heads: config[2],
        kv_heads: config[3],
        head_dim: config[4],
        page_size,
        layout: KvLayout::Nhd,
        kv_type: KvType::Same,
    })
}
