//! Races the training primitives: activations, RoPE, FP8 quantisation.

mod cpu_contender;
mod training_ops;

use std::process::ExitCode;

use cli::{Bench, Choices, Suite, UsageError};
use contender::Workload;
use workloads::{TrainingOp, TrainingProblem, TrainingShape, TrainingSuite};

const SUITES: [Suite; 4] = [
    Suite {
        name: "llama",
        about: "widths and heads of Llama 3 8B and 70B",
    },
    Suite {
        name: "deepseek",
        about: "widths and heads of DeepSeek-V3",
    },
    Suite {
        name: "trainscale",
        about: "16384x4096, and B=32 S=4096 D=8192",
    },
    Suite {
        name: "smoke",
        about: "small shapes and edge cases; fits a CPU",
    },
];

fn main() -> ExitCode {
    cli::run(Bench {
        name: "bench_training_ops",
        about: "Races GELU, SwiGLU, GEGLU, RoPE and FP8 quantisation kernels",
        arch: env!("HEAD_TO_HEAD_ARCH"),
        suites: &SUITES,
        problems,
        contenders: |choices| training_ops::contenders(choices.device),
    })
}

#[expect(clippy::vec_box, reason = "the harness takes problems of any size")]
fn problems(choices: &Choices) -> Result<Vec<Box<TrainingProblem>>, UsageError> {
    let mut problems = Vec::new();
    for op in TrainingOp::all().filter(|op| is_chosen(*op, choices)) {
        for (shape, workload) in workloads_of(op, choices)? {
            for &dtype in &choices.dtypes {
                let problem = TrainingProblem::new(op, shape, dtype, workload.clone());
                problems.push(Box::new(problem));
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
    for name in &choices.suites {
        let suite: TrainingSuite = name.parse().map_err(UsageError::new)?;
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
