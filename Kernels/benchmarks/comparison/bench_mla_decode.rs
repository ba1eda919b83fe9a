//! Races multi-head latent attention decode: all heads share one cache of latent rows.

use std::convert::Infallible;
use std::process::ExitCode;

use cli::{Bench, Choices, DType, Shortcut, UsageError};
use workloads::{KvType, MlaDecodeProblem, MlaShape, MlaSuite, LIST_MAX};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_mla_decode",
        about: "Races multi-head latent attention decode kernels",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: MlaSuite::SUITES,
        shortcuts: &[Shortcut {
            flag: "dsv3",
            suite: "dsv3",
        }],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |choices| mla_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<MlaDecodeProblem>, UsageError> {
    let workloads = choices.workloads(
        |suite: MlaSuite| suite.drawn(choices.shapes_seed),
        |sizes| {
            let shape = custom(sizes)?;
            let workload = MlaSuite::custom(&shape);
            Ok((shape, workload))
        },
    )?;
    choices.problems(workloads, |(shape, workload), dtype| {
        let (shape, workload) = (shape.clone(), workload.clone());
        let seed = choices.metadata_seed;
        Ok::<_, Infallible>(MlaDecodeProblem::seeded(shape, dtype, workload, seed))
    })
}

fn custom(config: &[usize]) -> Result<MlaShape, UsageError> {
    let (page_size, q_len) = match config {
        [_, _, _] => (64, 1),
        [_, _, _, page_size] => (*page_size, 1),
        [_, _, _, page_size, q_len] => (*page_size, *q_len),
        _ => (0, 0),
    };
    if page_size == 0 || config[0] > LIST_MAX {
        return Err(UsageError::of_shape(
            config,
            "is not a latent attention shape with at most 4096 sequences; write \
             BATCHxTOKENSxHEADS[xPAGE_SIZE[xNEW_TOKENS]], like 16x8192x128",
        ));
    }
    Ok(MlaShape {
        lengths: vec![config[1]; config[0]],
        q_len,
        heads: config[2],
        page_size,
        kv_type: KvType::Same,
    })
}
