//! Transformer Engine's activations: GELU, and gated ones on rows of a gate and an up.

use contender::{Contenders, Problem};
use reference::activation::Unit;
use transformer_engine::Function;
use transformer_engine_contender::{contender, data_type, Operation};
use workloads::{Activation, Pass, TrainingOp, TrainingProblem};

pub fn contenders() -> Contenders<TrainingProblem> {
    vec![contender(Operation {
        timed_region: "the op's one kernel",
        function,
        arguments,
        epsilon: |_| 0.0,
    })]
}

fn function(problem: &TrainingProblem) -> Result<Function, String> {
    let function = match problem.op {
        TrainingOp::Activation(Activation::GeluTanh, Pass::Forward) => Function::Gelu,
        TrainingOp::Activation(Activation::GeluTanh, Pass::Backward) => Function::GeluBackward,
        TrainingOp::Packed(Unit::Silu) => Function::SwiGlu,
        TrainingOp::Packed(Unit::GeluTanh) => Function::GeGlu,
        other => return Err(lacks(other)),
    };
    data_type(problem.dtype()).map(|_| function)
}

fn lacks(op: TrainingOp) -> String {
    let reason = match op {
        TrainingOp::Activation(Activation::Gelu, _) | TrainingOp::Packed(Unit::Gelu) => {
            "its GELU is the one with tanh"
        }
        TrainingOp::Activation(..) => "it takes gate and up side by side in one tensor",
        TrainingOp::Rope(..) => "it takes angles, and computes their cosines and sines",
        _ => "its scales are laid out otherwise",
    };
    format!("Transformer Engine lacks {op}: {reason}")
}

fn arguments(function: Function) -> &'static [&'static str] {
    match function {
        Function::Gelu => &["x", "out"],
        Function::GeluBackward => &["out_gradient", "x", "x_gradient"],
        Function::GeGlu | Function::SwiGlu => &["gate_and_up", "out"],
        // `function` chooses none of the others.
        _ => &[],
    }
}
