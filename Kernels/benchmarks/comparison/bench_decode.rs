//! Races decode attention over a paged cache: one or a few new tokens per sequence, with query
//! heads that share KV heads.

use std::convert::Infallible;
use std::process::ExitCode;

use cli::{Bench, Choices, DType, UsageError};
use workloads::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType, LIST_MAX};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_decode",
        about: "Races decode attention kernels over a paged cache",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: DecodeSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |choices| decode_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<DecodeProblem>, UsageError> {
    let workloads = choices.workloads(
        |suite: DecodeSuite| suite.drawn(choices.shapes_seed),
        |sizes| {
            let shape = custom(sizes)?;
            let workload = DecodeSuite::custom(&shape);
            Ok((shape, workload))
        },
    )?;
    choices.problems(workloads, |(shape, workload), dtype| {
        let (shape, workload) = (shape.clone(), workload.clone());
        let seed = choices.metadata_seed;
        Ok::<_, Infallible>(DecodeProblem::seeded(shape, dtype, workload, seed))
    })
}

fn custom(config: &[usize]) -> Result<DecodeShape, UsageError> {
    let refuse = |why: &str| {
        let remedy = "write BATCHxTOKENSxHEADSxKV_HEADSxHEAD_DIM[xPAGE_SIZE[xNEW_TOKENS]], \
                      like 16x8192x32x8x128";
        Err(UsageError::of_shape(config, &format!("{why}; {remedy}")))
    };
    let (page_size, q_len) = match config {
        [_, _, _, _, _] => (16, 1),
        [_, _, _, _, _, page_size] => (*page_size, 1),
        [_, _, _, _, _, page_size, q_len] => (*page_size, *q_len),
        _ => return refuse("is not a decode attention shape"),
    };
    if config[0] > LIST_MAX {
        return refuse(&format!("has more than {LIST_MAX} sequences"));
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
