//! The memory-bound row operations.

use std::fmt;

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
}

impl fmt::Display for NormOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
