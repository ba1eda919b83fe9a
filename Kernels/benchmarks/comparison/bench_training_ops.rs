//! Races the training primitives: activations, RoPE, FP8 quantisation.

mod cpu_contender;
mod training_ops;

use std::process::ExitCode;

use cli::{Bench, Choices, UsageError};
use contender::Workload;
use workloads::{TrainingOp, TrainingProblem, TrainingShape, TrainingSuite};

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_training_ops",
        about: "Races GELU, SwiGLU, GEGLU, RoPE and FP8 quantisation kernels",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: TrainingSuite::SUITES,
        shortcuts: &[],
        problems,
        contenders: |choices| training_ops::contenders(choices.device),
    })
}

fn problems(choices: &Choices) -> Result<Vec<TrainingProblem>, UsageError> {
    let mut problems = Vec::new();
    for op in TrainingOp::all().filter(|op| is_chosen(*op, choices)) {
        for (shape, workload) in workloads_of(op, choices)? {
            for &dtype in &choices.dtypes {
                problems.push(TrainingProblem::new(op, shape, dtype, workload.clone()));
            }
        }
    }
    Ok(problems)
}

fn is_chosen(op: TrainingOp, choices: &Choices) -> bool {
    if op.is_backward() {
        choices.passes.backward()
    } else {
        choices.passes.forward()
    }
}

/// Shapes given by hand go to the ops of their kind.
fn workloads_of(
    op: TrainingOp,
    choices: &Choices,
) -> Result<Vec<(TrainingShape, Workload)>, UsageError> {
    let mut workloads = Vec::new();
    for suite in choices.suites_of::<TrainingSuite>()? {
        workloads.extend(suite.workloads(op));
    }
    for config in &choices.configs {
        let shape = TrainingShape::from_sizes(config).map_err(UsageError::new)?;
        if matches!(shape, TrainingShape::Rope(_)) == op.is_rope() {
            workloads.push(TrainingSuite::custom(shape));
        }
    }
    Ok(workloads)
}
