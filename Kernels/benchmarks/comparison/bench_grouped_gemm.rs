//! Races grouped matrix products: the experts of mixture-of-experts layers, in bf16, f16, FP8, MXFP8, NVFP4 and MXFP4.

use std::process::ExitCode;

use cli::{Bench, Choices, DType, UsageError};
use workloads::{GemmProblem, GroupKind, GroupedGemmSuite, LIST_MAX};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_grouped_gemm",
        about:
            "Races grouped matrix products; FP8 and FP4 operands come quantised, with block scales",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: GroupedGemmSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16, DType::F8E4M3],
        problems,
        contenders: |choices| gemm_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<GemmProblem>, UsageError> {
    let workloads = choices.workloads(
        |suite: GroupedGemmSuite| suite.drawn(choices.shapes_seed),
        |sizes| match *sizes {
            [groups, each, n, k] if groups <= LIST_MAX => Ok(GroupedGemmSuite::custom(groups, each, n, k)),
            _ => Err(UsageError::of_shape(
                sizes,
                "is not a product of at most 4096 groups; write GROUPSxROWSxNxK, like 8x4096x4096x7168",
            )),
        },
    )?;
    if workloads
        .iter()
        .any(|(_, layout, _)| layout.kind == GroupKind::Dense)
    {
        return Err(UsageError::new("a workload has no groups; use bench_gemm"));
    }
    choices.problems(workloads, |(shape, layout, workload), dtype| {
        let (layout, workload) = (layout.clone(), workload.clone());
        GemmProblem::seeded(*shape, layout, dtype, workload, choices.metadata_seed)
    })
}
