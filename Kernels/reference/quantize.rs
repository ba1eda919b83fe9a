//! FP8 (e4m3) quantisation of a group of values that share a scale.
//!
//! The definition is in f32 arithmetic, each step rounded to nearest, so that there is one correct
//! answer, bit for bit:
//!
//! ```text
//! scale     = max(largest |x| / 448, 2^-126)         rounded up to a power of two for UE8M0
//! quantised = e4m3(x * (1 / scale))                  saturating
//! ```
//!
//! A group of zeros, or of values so small that their scale would be subnormal, has the scale
//! 2^-126. A group with a NaN or an infinity has no scale: its scale and all its elements become
//! NaN, so that the fault shows wherever the group is used.

/// Largest finite e4m3 value.
pub const E4M3_MAX: f32 = 448.0;

/// How a group's scale is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleFormat {
    F32,
    /// A power of two, at least the f32 scale.
    Ue8m0,
}

pub fn scale(format: ScaleFormat, group: impl Iterator<Item = f32>) -> f32 {
    let mut largest = 0.0f32;
    for value in group {
        if !value.is_finite() {
            return f32::NAN;
        }
        largest = largest.max(value.abs());
    }
    let scale = (largest / E4M3_MAX).max(f32::MIN_POSITIVE);
    match format {
        ScaleFormat::F32 => scale,
        // Carries into the exponent unless the mantissa is zero.
        ScaleFormat::Ue8m0 => f32::from_bits((scale.to_bits() + 0x007f_ffff) & 0x7f80_0000),
    }
}

/// The value that is rounded to e4m3.
pub fn scaled(value: f32, scale: f32) -> f32 {
    value * (1.0 / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(group: &[f32]) -> (f32, f32) {
        let of = |format| scale(format, group.iter().copied());
        (of(ScaleFormat::F32), of(ScaleFormat::Ue8m0))
    }

    #[test]
    fn the_largest_value_becomes_the_largest_code() {
        assert_eq!(both(&[1.0, -448.0]), (1.0, 1.0));
        assert_eq!(both(&[1.0, -449.0]).1, 2.0);
        for largest in [3.7f32, 1e-3, 6e4, f32::MAX, 1e-35] {
            let (exact, power) = both(&[largest, largest / 3.0]);
            // Anything up to 464 rounds to 448.
            let top = scaled(largest, exact);
            assert!((top - E4M3_MAX).abs() < 1e-3, "{largest}: {top}");
            assert!(power >= exact && power < 2.0 * exact);
            assert_eq!(power.to_bits() & 0x7f_ffff, 0);
        }
    }

    #[test]
    fn zeros_and_subnormals_have_the_least_scale() {
        let least = f32::MIN_POSITIVE;
        for group in [[0.0, -0.0], [1e-42, -1e-45], [1e-37, 0.0]] {
            assert_eq!(both(&group), (least, least));
            assert!(scaled(group[0], least).is_finite());
        }
    }

    #[test]
    fn a_group_that_is_not_finite_has_no_scale() {
        for fault in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (exact, power) = both(&[1.0, fault, 2.0]);
            assert!(exact.is_nan() && power.is_nan());
            assert!(scaled(1.0, exact).is_nan());
        }
    }
}
