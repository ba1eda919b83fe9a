//! Transformer Engine's own norms, not those of cuDNN that it can call instead.

use contender::Contenders;
use transformer_engine::Function;
use transformer_engine_contender::{contender, data_type, Operation};
use workloads::{NormOp, NormProblem};

/// Widths that all of its norms have kernels of their own for, which count vectors of 16 bytes in 31 bits.
const TUNED_COLUMNS: [usize; 5] = [768, 1024, 2048, 4096, 8192];
const VECTOR_BYTES: usize = 16;
/// Its kernels for any width count elements.
const MOST: usize = 1 << 31;

pub fn contenders() -> Contenders<NormProblem> {
    vec![contender(Operation {
        timed_region: "all kernels of the call: one forward, which also writes the statistics for a backward pass; \
                       backward one more, which sums the weights' gradients",
        function,
        arguments,
        epsilon: |problem: &NormProblem| problem.epsilon,
    })]
}

fn function(problem: &NormProblem) -> Result<Function, String> {
    let function = match problem.op {
        NormOp::RmsNormForward => Function::RmsNormForward,
        NormOp::RmsNormBackward => Function::RmsNormBackward,
        NormOp::LayerNormForward => Function::LayerNormForward,
        NormOp::LayerNormBackward => Function::LayerNormBackward,
        other => return Err(format!("Transformer Engine lacks {other}")),
    };
    let (types, shape) = (problem.types, problem.shape);
    data_type(types.activation)?;
    if types.weight != types.activation {
        return Err(format!(
            "{} weights with {} activations; it takes those of the activations' type",
            types.weight, types.activation
        ));
    }
    let most = match TUNED_COLUMNS.contains(&shape.columns) {
        true => MOST * (VECTOR_BYTES / types.activation.size_bytes()),
        false => MOST,
    };
    let elements = shape.rows * shape.columns;
    match elements < most {
        true => Ok(function),
        false => Err(format!(
            "{elements} elements; it counts fewer than {most} of this width"
        )),
    }
}

fn arguments(function: Function) -> &'static [&'static str] {
    match function {
        Function::RmsNormForward => &["x", "weight", "out", "rstd"],
        Function::RmsNormBackward => &[
            "out_gradient",
            "x",
            "rstd",
            "weight",
            "x_gradient",
            "weight_gradient",
        ],
        Function::LayerNormForward => &["x", "weight", "bias", "out", "mean", "rstd"],
        Function::LayerNormBackward => &[
            "out_gradient",
            "x",
            "mean",
            "rstd",
            "weight",
            "x_gradient",
            "weight_gradient",
            "bias_gradient",
        ],
        // `function` chooses none of the others.
        _ => &[],
    }
}
