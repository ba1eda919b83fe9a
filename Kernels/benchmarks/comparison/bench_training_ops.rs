//! Races the training primitives: activations, RoPE, FP8 and FP4 quantisation, also of a norm.

use std::convert::Infallible;
use std::process::ExitCode;

use cli::{Bench, Choices, DType, UsageError};
use workloads::{TrainingOp, TrainingProblem, TrainingShape, TrainingSuite};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_training_ops",
        about: "Races GELU, SwiGLU, GEGLU, RoPE and quantisation kernels, and RMSNorm with FP8 quantisation",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: TrainingSuite::SUITES,
        shortcuts: &[],
        dtypes: &[DType::Bf16],
        problems,
        contenders: |choices| training_contenders::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<TrainingProblem>, UsageError> {
    let mut problems = Vec::new();
    for op in TrainingOp::all().filter(|op| choices.passes.include(op.is_backward())) {
        let of_suite = |suite: TrainingSuite| suite.drawn(op, choices.shapes_seed);
        let mut workloads = choices.workloads(of_suite, |sizes| {
            let shape = TrainingShape::from_sizes(sizes).map_err(UsageError::new)?;
            Ok(TrainingSuite::custom(shape))
        })?;
        // Custom shapes go to the ops of their kind.
        workloads.retain(|(shape, _)| matches!(shape, TrainingShape::Rope(_)) == op.is_rope());
        problems.extend(choices.problems(workloads, |(shape, workload), dtype| {
            Ok::<_, Infallible>(TrainingProblem::new(op, *shape, dtype, workload.clone()))
        })?);
    }
    Ok(problems)
}
