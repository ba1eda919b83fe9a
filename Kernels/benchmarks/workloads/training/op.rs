//! The training primitives between the GEMMs: activations, RoPE, FP8 and FP4 quantisation, also of a norm.

use std::fmt;

use reference::activation::Unit;
use reference::quantize::ScaleFormat;
use reference::rope::Pairs;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    Forward,
    Backward,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Gelu,
    GeluTanh,
    SwiGlu,
    /// With the tanh approximation of GELU.
    GeGlu,
}

impl Activation {
    pub fn name(self) -> &'static str {
        match self {
            Activation::Gelu => "gelu",
            Activation::GeluTanh => "gelu_tanh",
            Activation::SwiGlu => "swiglu",
            Activation::GeGlu => "geglu",
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Activation::Gelu => Unit::Gelu,
            Activation::GeluTanh | Activation::GeGlu => Unit::GeluTanh,
            Activation::SwiGlu => Unit::Silu,
        }
    }

    /// Whether the activation is multiplied by a second tensor.
    pub fn is_gated(self) -> bool {
        matches!(self, Activation::SwiGlu | Activation::GeGlu)
    }
}

/// Which elements share a scale, and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    Row,
    /// 128 elements of a row.
    Group,
    /// 128 elements of a row; the scale is a power of two.
    GroupUe8m0,
    /// 128 rows x 128 columns.
    Block,
    /// 32 elements of a row; the scale is a power of two, in tiles as tensor cores read them.
    Mxfp8,
    /// 16 elements of a row, of 4 bits each; e4m3 scales in tiles, and a scale of the tensor.
    Nvfp4,
    /// 32 elements of a row, of 4 bits each; the scale is a power of two, in tiles.
    Mxfp4,
}

/// Rows and columns of a group.
pub(crate) const GROUP: usize = 128;
/// The scale of a tensor whose largest magnitude is 1: then the largest scale is e4m3's largest.
pub(super) const QUANTIZED_TO: f32 = 1.0 / (6.0 * 448.0);
/// No element of the norm of uniform numbers is larger, whose root mean square is theirs over the root of 3.
pub(super) const NORM_LARGEST: f32 = 2.0;

impl Scaling {
    /// How scales that are not e4m3 are stored.
    pub fn format(self) -> Option<ScaleFormat> {
        match self {
            Scaling::Row | Scaling::Group | Scaling::Block => Some(ScaleFormat::F32),
            Scaling::GroupUe8m0 | Scaling::Mxfp8 | Scaling::Mxfp4 => Some(ScaleFormat::Ue8m0),
            Scaling::Nvfp4 => None,
        }
    }

    /// Whether the scales lie in tiles of 128 rows by 4, padded with zeros, rather than row by row.
    pub fn is_tiled(self) -> bool {
        matches!(self, Scaling::Mxfp8 | Scaling::Nvfp4 | Scaling::Mxfp4)
    }

    /// Whether elements are e2m1, two per byte, rather than e4m3.
    pub fn is_paired(self) -> bool {
        matches!(self, Scaling::Nvfp4 | Scaling::Mxfp4)
    }

    /// Rows and columns that share a scale, in a tensor with this many columns.
    pub fn tile(self, columns: usize) -> (usize, usize) {
        match self {
            Scaling::Row => (1, columns),
            Scaling::Group | Scaling::GroupUe8m0 => (1, GROUP),
            Scaling::Block => (GROUP, GROUP),
            Scaling::Mxfp8 | Scaling::Mxfp4 => (1, 32),
            Scaling::Nvfp4 => (1, 16),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingOp {
    Activation(Activation, Pass),
    /// `unit(gate) * up`, where a row is a gate followed by an up of the same length, as a fused gate-up
    /// GEMM writes them.
    Packed(Unit),
    Rope(Pairs, Pass),
    Quantize(Scaling),
    Dequantize(Scaling),
    /// RMSNorm, quantised: `Group`, `Mxfp8` or `Nvfp4`; between the two nothing is rounded to a narrower type.
    NormQuantize(Scaling),
}

use Pass::{Backward, Forward};
use TrainingOp::{Dequantize, NormQuantize, Packed, Quantize, Rope};

const NAMES: [(TrainingOp, &str); 32] = [
    (
        TrainingOp::Activation(Activation::Gelu, Forward),
        "gelu_fwd",
    ),
    (
        TrainingOp::Activation(Activation::Gelu, Backward),
        "gelu_bwd",
    ),
    (
        TrainingOp::Activation(Activation::GeluTanh, Forward),
        "gelu_tanh_fwd",
    ),
    (
        TrainingOp::Activation(Activation::GeluTanh, Backward),
        "gelu_tanh_bwd",
    ),
    (
        TrainingOp::Activation(Activation::SwiGlu, Forward),
        "swiglu_fwd",
    ),
    (
        TrainingOp::Activation(Activation::SwiGlu, Backward),
        "swiglu_bwd",
    ),
    (
        TrainingOp::Activation(Activation::GeGlu, Forward),
        "geglu_fwd",
    ),
    (
        TrainingOp::Activation(Activation::GeGlu, Backward),
        "geglu_bwd",
    ),
    (Packed(Unit::Silu), "silu_and_mul"),
    (Packed(Unit::GeluTanh), "gelu_tanh_and_mul"),
    (Packed(Unit::Gelu), "gelu_and_mul"),
    (Rope(Pairs::HalfSplit, Forward), "rope_fwd"),
    (Rope(Pairs::HalfSplit, Backward), "rope_bwd"),
    (Rope(Pairs::Interleaved, Forward), "rope_interleaved_fwd"),
    (Rope(Pairs::Interleaved, Backward), "rope_interleaved_bwd"),
    (Quantize(Scaling::Row), "quantize_row"),
    (Quantize(Scaling::Group), "quantize_1x128"),
    (Quantize(Scaling::GroupUe8m0), "quantize_1x128_ue8m0"),
    (Quantize(Scaling::Block), "quantize_128x128"),
    (Dequantize(Scaling::Row), "dequantize_row"),
    (Dequantize(Scaling::Group), "dequantize_1x128"),
    (Dequantize(Scaling::GroupUe8m0), "dequantize_1x128_ue8m0"),
    (Dequantize(Scaling::Block), "dequantize_128x128"),
    (Quantize(Scaling::Mxfp8), "quantize_mxfp8"),
    (Quantize(Scaling::Nvfp4), "quantize_nvfp4"),
    (Dequantize(Scaling::Mxfp8), "dequantize_mxfp8"),
    (Dequantize(Scaling::Nvfp4), "dequantize_nvfp4"),
    (Quantize(Scaling::Mxfp4), "quantize_mxfp4"),
    (Dequantize(Scaling::Mxfp4), "dequantize_mxfp4"),
    (NormQuantize(Scaling::Group), "rmsnorm_quantize_1x128"),
    (NormQuantize(Scaling::Mxfp8), "rmsnorm_quantize_mxfp8"),
    (NormQuantize(Scaling::Nvfp4), "rmsnorm_quantize_nvfp4"),
];

impl TrainingOp {
    pub fn all() -> impl Iterator<Item = TrainingOp> {
        NAMES.iter().map(|(op, _)| *op)
    }

    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(op, _)| *op == self);
        named.expect("every op has a name").1
    }

    /// What a norm adds to the mean of the squares.
    pub fn epsilon(self) -> Option<f32> {
        matches!(self, NormQuantize(_)).then_some(1e-6)
    }

    pub fn is_rope(self) -> bool {
        matches!(self, TrainingOp::Rope(..))
    }

    /// Whether there is one right answer, bit for bit. That of a norm has f32 scales that follow its sum, which has no
    /// order; where they are rounded, the definition leaves the sum no choice.
    pub fn is_exact(self) -> bool {
        match self {
            Quantize(_) => true,
            NormQuantize(scaling) => scaling.is_tiled(),
            _ => false,
        }
    }

    /// Names without a pass count as forward.
    pub fn is_backward(self) -> bool {
        match self {
            TrainingOp::Activation(_, pass) | TrainingOp::Rope(_, pass) => pass == Pass::Backward,
            TrainingOp::Packed(_)
            | TrainingOp::Quantize(_)
            | TrainingOp::Dequantize(_)
            | TrainingOp::NormQuantize(_) => false,
        }
    }

    /// Operations per element that every implementation does in fp32; exp, erf and division count as
    /// one each.
    pub fn flops_per_element(self) -> f64 {
        match self {
            TrainingOp::Activation(activation, pass) => {
                let forward = match activation {
                    Activation::Gelu => 4.0,
                    Activation::GeluTanh => 8.0,
                    Activation::SwiGlu => 5.0,
                    Activation::GeGlu => 9.0,
                };
                if pass == Pass::Forward {
                    forward
                } else {
                    forward + 8.0
                }
            }
            TrainingOp::Packed(Unit::Silu | Unit::Gelu) => 5.0,
            TrainingOp::Packed(Unit::GeluTanh) => 9.0,
            TrainingOp::Rope(..) => 3.0,
            TrainingOp::Quantize(_) => 3.0,
            TrainingOp::Dequantize(_) => 1.0,
            // A norm's and a quantisation's.
            TrainingOp::NormQuantize(_) => 7.0,
        }
    }
}

impl fmt::Display for TrainingOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_the_pass() {
        let names: BTreeSet<&str> = TrainingOp::all().map(TrainingOp::name).collect();
        assert_eq!(names.len(), NAMES.len());
        for op in TrainingOp::all() {
            assert_eq!(op.is_backward(), op.name().ends_with("_bwd"));
            assert_eq!(op.is_rope(), op.name().starts_with("rope"));
        }
    }
}
