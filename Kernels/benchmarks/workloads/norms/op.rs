//! The memory-bound row operations: tensors and cost.
//!
//! Backward operations take what a forward pass saves (rstd, mean, lse, the softmax output) as
//! separate inputs, drawn around the values that a forward pass over the same inputs would give.
//! The gradients are then well defined, and every contender gets the same bytes.

use std::fmt;

use numeric::DType;
use tensor::{Fill, TensorSpec};

use crate::rows::RowShape;

/// Types of the tensors of a row operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormTypes {
    /// Activations and their gradients.
    pub activation: DType,
    /// Weights, biases and their gradients: f32, or the activations' type.
    pub weight: DType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NormOp {
    RmsNormForward,
    RmsNormBackward,
    /// In place: residual += x, then x = norm(residual) * weight.
    FusedAddRmsNorm,
    LayerNormForward,
    LayerNormBackward,
    SoftmaxForward,
    SoftmaxBackward,
    CrossEntropyForward,
    CrossEntropyBackward,
    /// Both in one kernel: the losses, and the gradient of their sum, which overwrites the logits.
    CrossEntropyForwardBackward,
}

const NAMES: [(NormOp, &str); 10] = [
    (NormOp::RmsNormForward, "rmsnorm_fwd"),
    (NormOp::RmsNormBackward, "rmsnorm_bwd"),
    (NormOp::FusedAddRmsNorm, "fused_add_rmsnorm"),
    (NormOp::LayerNormForward, "layernorm_fwd"),
    (NormOp::LayerNormBackward, "layernorm_bwd"),
    (NormOp::SoftmaxForward, "softmax_fwd"),
    (NormOp::SoftmaxBackward, "softmax_bwd"),
    (NormOp::CrossEntropyForward, "cross_entropy_fwd"),
    (NormOp::CrossEntropyBackward, "cross_entropy_bwd"),
    (NormOp::CrossEntropyForwardBackward, "cross_entropy_fwd_bwd"),
];

/// The exponential of the largest logit overflows f32.
pub(super) const LOGIT: f32 = 110.0;

impl NormOp {
    pub fn all() -> impl Iterator<Item = NormOp> {
        NAMES.iter().map(|(op, _)| *op)
    }

    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    pub fn is_cross_entropy(self) -> bool {
        matches!(
            self,
            NormOp::CrossEntropyForward
                | NormOp::CrossEntropyBackward
                | NormOp::CrossEntropyForwardBackward
        )
    }

    pub fn is_backward(self) -> bool {
        matches!(
            self,
            NormOp::RmsNormBackward
                | NormOp::LayerNormBackward
                | NormOp::SoftmaxBackward
                | NormOp::CrossEntropyBackward
                | NormOp::CrossEntropyForwardBackward
        )
    }

    pub fn has_weight(self) -> bool {
        !self.is_cross_entropy()
            && !matches!(self, NormOp::SoftmaxForward | NormOp::SoftmaxBackward)
    }

    /// The default parameters: the usual values of models.
    pub fn epsilon(self) -> Option<f32> {
        match self {
            NormOp::RmsNormForward | NormOp::FusedAddRmsNorm => Some(1e-6),
            NormOp::LayerNormForward => Some(1e-5),
            _ => None,
        }
    }

    /// The tensors of an operation, in the order of the contenders' buffers.
    pub fn tensors(self, shape: RowShape, types: NormTypes) -> Vec<TensorSpec> {
        let RowShape { rows, columns } = shape;
        let matrix = [rows, columns];
        let input = |name| TensorSpec::input(name, types.activation, &matrix);
        let output = |name| TensorSpec::output(name, types.activation, &matrix);
        let in_out = |name| TensorSpec::in_out(name, types.activation, &matrix);
        let weight = |name| TensorSpec::input(name, types.weight, &[columns]);
        let weight_gradient = |name| TensorSpec::output(name, types.weight, &[columns]);
        let per_row = |name, fill| TensorSpec::input(name, DType::F32, &[rows]).filled(fill);
        let row_output = |name| TensorSpec::output(name, DType::F32, &[rows]);
        let target = || {
            let below = u32::try_from(columns).expect("columns fit in 32 bits");
            TensorSpec::input("target", DType::I64, &[rows]).filled(Fill::Index { below })
        };
        // Uniform values in [-1, 1] have a mean of 0 and a root mean square of 1 / sqrt(3).
        let rstd = || per_row("rstd", around(3f32.sqrt(), 0.1));
        match self {
            NormOp::RmsNormForward => vec![input("x"), weight("weight"), output("out")],
            NormOp::RmsNormBackward => vec![
                input("x"),
                weight("weight"),
                input("out_gradient"),
                rstd(),
                output("x_gradient"),
                weight_gradient("weight_gradient"),
            ],
            NormOp::FusedAddRmsNorm => vec![in_out("x"), in_out("residual"), weight("weight")],
            NormOp::LayerNormForward => {
                vec![input("x"), weight("weight"), weight("bias"), output("out")]
            }
            NormOp::LayerNormBackward => vec![
                input("x"),
                weight("weight"),
                input("out_gradient"),
                per_row("mean", around(0.0, 0.1)),
                rstd(),
                output("x_gradient"),
                weight_gradient("weight_gradient"),
                weight_gradient("bias_gradient"),
            ],
            NormOp::SoftmaxForward => vec![input("x"), output("out")],
            NormOp::SoftmaxBackward => {
                // Shares of a row that sum to about 1.
                let shares = Fill::Uniform {
                    low: 0.0,
                    high: 2.0 / columns as f32,
                };
                vec![
                    input("out").filled(shares),
                    input("out_gradient"),
                    output("x_gradient"),
                ]
            }
            NormOp::CrossEntropyForward => {
                vec![
                    input("logits"),
                    target(),
                    row_output("loss"),
                    row_output("lse"),
                ]
            }
            NormOp::CrossEntropyBackward => {
                // exp of uniform values in [-1, 1] has the mean sinh(1).
                let lse = (columns as f32 * 1f32.sinh()).ln();
                vec![
                    input("logits"),
                    target(),
                    per_row("lse", around(lse, 0.1)),
                    per_row("loss_gradient", around(0.0, 1.0)),
                    output("logits_gradient"),
                ]
            }
            NormOp::CrossEntropyForwardBackward => {
                vec![in_out("logits"), target(), row_output("loss")]
            }
        }
    }

    /// Operations per element that every implementation does in fp32; exp counts as one.
    pub fn flops_per_element(self) -> f64 {
        match self {
            NormOp::RmsNormForward => 4.0,
            NormOp::RmsNormBackward => 10.0,
            NormOp::FusedAddRmsNorm => 5.0,
            NormOp::LayerNormForward => 7.0,
            NormOp::LayerNormBackward => 13.0,
            NormOp::SoftmaxForward | NormOp::SoftmaxBackward => 4.0,
            NormOp::CrossEntropyForward => 3.0,
            NormOp::CrossEntropyBackward => 4.0,
            NormOp::CrossEntropyForwardBackward => 6.0,
        }
    }

    /// What errors of a tensor are relative to where its own values may cancel, else 0.
    ///
    /// Gradients of parameters are sums over rows of terms of either sign, each about as large as a
    /// uniform value. A loss is the difference of an lse and a logit, which with one column is 0
    /// however large they are; so is the gradient then: a share of 1, minus 1. Softmax's gradient is
    /// a share times a difference, which is 0 if the row's gradients are equal; the largest share of
    /// uniform logits in [-1, 1] is e / sinh(1) times the mean.
    pub fn magnitude(self, tensor: &str, shape: RowShape) -> f64 {
        let one_column = shape.columns == 1;
        match (self, tensor) {
            (_, "weight_gradient" | "bias_gradient") => (shape.rows as f64 / 3.0).sqrt(),
            (NormOp::CrossEntropyForward | NormOp::CrossEntropyForwardBackward, "loss") => {
                // A difference of two values as large as logits: of the roundings that sums are allowed, an eighth.
                f64::from(LOGIT) / if one_column { 1.0 } else { 8.0 }
            }
            (NormOp::CrossEntropyForwardBackward, "logits") if one_column => 1.0,
            (NormOp::SoftmaxBackward, "x_gradient") => {
                1f64.exp() / 1f64.sinh() / shape.columns as f64
            }
            _ => 0.0,
        }
    }
}

impl fmt::Display for NormOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn around(middle: f32, distance: f32) -> Fill {
    Fill::Uniform {
        low: middle - distance,
        high: middle + distance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_ops() {
        for (op, name) in NAMES {
            assert_eq!(op.to_string(), name);
        }
    }
}
