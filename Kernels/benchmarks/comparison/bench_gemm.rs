//! Races dense matrix products with bf16, f16, FP8 (with fp32 or UE8M0 scales), MXFP8, NVFP4 and MXFP4
//! operands.

use std::process::ExitCode;

use cli::{Bench, Choices, DType, Shortcut, UsageError};
use workloads::{GemmProblem, GemmSuite, GroupKind};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_gemm",
        about: "Races dense matrix products; FP8, MXFP8, NVFP4 and MXFP4 operands come quantised, with scales",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: GemmSuite::SUITES,
        shortcuts: &[Shortcut {
            flag: "dsv3",
            suite: "dsv3",
        }],
        dtypes: &[DType::Bf16, DType::F8E4M3],
        problems,
        contenders: |choices| gemm_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<GemmProblem>, UsageError> {
    let workloads = choices.workloads(
        |suite: GemmSuite| suite.drawn(choices.shapes_seed),
        |sizes| match *sizes {
            [m, n, k] => Ok(GemmSuite::custom(m, n, k)),
            _ => Err(UsageError::of_shape(
                sizes,
                "is not a matrix product; write MxNxK, like 4096x4096x7168",
            )),
        },
    )?;
    if workloads
        .iter()
        .any(|(_, layout, _)| layout.kind != GroupKind::Dense)
    {
        return Err(UsageError::new(
            "a workload has groups; use bench_grouped_gemm",
        ));
    }
    choices.problems(workloads, |(shape, layout, workload), dtype| {
        let (layout, workload) = (layout.clone(), workload.clone());
        GemmProblem::seeded(*shape, layout, dtype, workload, choices.metadata_seed)
    })
}
