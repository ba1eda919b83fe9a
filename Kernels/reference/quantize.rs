//! Quantisation of a group of values that share a scale: to FP8 (e4m3) and to FP4 (e2m1).
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
//!
//! MXFP8 is this with UE8M0 scales of 32 values of a row. Rounding the scale up is what cuBLAS does: no
//! value saturates. The OCP specification of MX rounds it down instead, to floor(log2 largest) - 8, which
//! cuts values between 448 and 512 times the scale.
//!
//! NVFP4 has e4m3 scales of 16 values of a row, relative to the scale of the whole tensor, a positive
//! normal f32 that is given:
//!
//! ```text
//! scale     = e4m3(largest |x| / 6 / tensor scale)           saturating
//! quantised = e2m1(x * (1 / (scale * tensor scale)))         saturating; e2m1(x * 0) if the scale is 0
//! ```
//!
//! MXFP4 has UE8M0 scales of 32 values of a row, rounded up too:
//!
//! ```text
//! scale     = max(largest |x| / 6, 2^-126)           rounded up to a power of two
//! quantised = e2m1(x * (1 / scale))
//! ```
//!
//! e2m1 has no NaN: in a group with a NaN or an infinity the scale is NaN and all elements are +6.

/// Largest finite e4m3 value, and largest e2m1 value.
pub const E4M3_MAX: f32 = 448.0;
pub const E2M1_MAX: f32 = 6.0;

/// How a group's scale is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleFormat {
    F32,
    /// A power of two, at least the f32 scale.
    Ue8m0,
}

/// The scale of a group of e4m3 values.
pub fn scale(format: ScaleFormat, group: impl Iterator<Item = f32>) -> f32 {
    scale_to(E4M3_MAX, format, group)
}

/// The scale of a group of MXFP4.
pub fn mxfp4_scale(group: impl Iterator<Item = f32>) -> f32 {
    scale_to(E2M1_MAX, ScaleFormat::Ue8m0, group)
}

/// The scale of values whose largest is `most`.
fn scale_to(most: f32, format: ScaleFormat, group: impl Iterator<Item = f32>) -> f32 {
    let mut largest = 0.0f32;
    for value in group {
        if !value.is_finite() {
            return f32::NAN;
        }
        largest = largest.max(value.abs());
    }
    let scale = (largest / most).max(f32::MIN_POSITIVE);
    match format {
        ScaleFormat::F32 => scale,
        // Carries into the exponent unless the mantissa is zero.
        ScaleFormat::Ue8m0 => f32::from_bits((scale.to_bits() + 0x007f_ffff) & 0x7f80_0000),
    }
}

/// The value that is rounded to e4m3, or of MXFP4 to e2m1.
pub fn scaled(value: f32, scale: f32) -> f32 {
    value * (1.0 / scale)
}

/// Every magnitude of e2m1, by its code.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The value of a code of 4 bits.
pub fn e2m1_value(code: u8) -> f32 {
    let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
    sign * E2M1[usize::from(code & 7)]
}

/// The nearest code, of two equally near the even one; +6 for a NaN.
pub fn e2m1_code(value: f32) -> u8 {
    if value.is_nan() {
        return 7;
    }
    let magnitude = f64::from(value.abs().min(6.0));
    let distance = |code: u8| (f64::from(E2M1[usize::from(code)]) - magnitude).abs();
    let nearest = (0..8u8).min_by(|&one, &other| {
        let near = distance(one).total_cmp(&distance(other));
        near.then((one % 2).cmp(&(other % 2)))
    });
    let sign = if value.is_sign_negative() { 8 } else { 0 };
    sign | nearest.expect("there are eight codes")
}

/// The scale of a group of NVFP4 before it is rounded to e4m3.
pub fn nvfp4_scale(tensor_scale: f32, group: impl Iterator<Item = f32>) -> f32 {
    let mut largest = 0.0f32;
    for value in group {
        if !value.is_finite() {
            return f32::NAN;
        }
        largest = largest.max(value.abs());
    }
    largest / E2M1_MAX / tensor_scale
}

/// The value that is rounded to e2m1, with the rounded scale.
pub fn nvfp4_scaled(value: f32, scale: f32, tensor_scale: f32) -> f32 {
    let inverse = if scale == 0.0 {
        0.0
    } else {
        1.0 / (scale * tensor_scale)
    };
    value * inverse
}

/// Rows, and scales of a row, of a tile of MX and NVFP4 scales.
pub const SCALE_TILE: (usize, usize) = (128, 4);

/// Number of scales with `blocks` per row: whole tiles.
pub fn tiled_scales(rows: usize, blocks: usize) -> usize {
    rows.next_multiple_of(SCALE_TILE.0) * blocks.next_multiple_of(SCALE_TILE.1)
}

/// Where the scale of a block of a row lies, as tensor cores read them: tile after tile along the row, each
/// of 512 bytes, 16 bytes for rows r, r + 32, r + 64 and r + 96.
pub fn scale_place(row: usize, block: usize, blocks: usize) -> usize {
    let across = blocks.div_ceil(SCALE_TILE.1);
    let tile = row / 128 * across + block / 4;
    tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2m1_is_nearest_even() {
        for (value, code) in [
            (0.0, 0),
            (0.25, 0),
            (0.26, 1),
            (0.75, 2),
            (1.25, 2),
            (1.75, 4),
            (2.5, 4),
            (2.51, 5),
            (3.5, 6),
            (5.0, 6),
            (5.01, 7),
            (7.0, 7),
            (f32::INFINITY, 7),
            (-0.1, 8),
            (-5.5, 15),
            (f32::NAN, 7),
        ] {
            assert_eq!(e2m1_code(value), code, "{value}");
        }
        for code in 0..16 {
            assert_eq!(e2m1_code(e2m1_value(code)), code);
        }
    }

    #[test]
    fn groups_of_nvfp4() {
        let group = [0.0, -12.0, 3.0];
        let scale = nvfp4_scale(0.5, group.into_iter());
        assert_eq!(scale, 4.0);
        assert_eq!(nvfp4_scaled(-12.0, scale, 0.5), -6.0);
        // Zeros, and values too small for a scale, become zeros with their signs.
        assert_eq!(nvfp4_scale(1.0, [0.0; 4].into_iter()), 0.0);
        assert_eq!(e2m1_code(nvfp4_scaled(-1e-30, 0.0, 1.0)), 8);
        let faulty = nvfp4_scale(1.0, [1.0, f32::NEG_INFINITY].into_iter());
        assert!(faulty.is_nan());
        assert_eq!(e2m1_code(nvfp4_scaled(1.0, faulty, 1.0)), 7);
    }

    #[test]
    fn groups_of_mxfp4() {
        // The smallest power of two with which nothing saturates.
        for (largest, power) in [(6.0, 1.0), (6.1, 2.0), (3.0, 0.5), (0.0, f32::MIN_POSITIVE)] {
            assert_eq!(mxfp4_scale([largest / 3.0, -largest].into_iter()), power);
        }
        assert_eq!(e2m1_code(scaled(-6.1, 2.0)), 13);
        let faulty = mxfp4_scale([1.0, f32::INFINITY].into_iter());
        assert!(faulty.is_nan());
        assert_eq!(e2m1_code(scaled(-1.0, faulty)), 7);
    }

    #[test]
    fn tiles_of_scales_have_one_place_each() {
        let blocks = 6;
        let count = tiled_scales(130, blocks);
        assert_eq!(count, 256 * 8);
        let mut seen = vec![false; count];
        for (row, block) in (0..256).flat_map(|row| (0..8).map(move |block| (row, block))) {
            let place = scale_place(row, block, blocks);
            assert!(!std::mem::replace(&mut seen[place], true));
        }
        // As cuBLAS documents it: 16 bytes per row of 32, 4 per block of rows.
        assert_eq!(scale_place(33, 2, blocks), 16 + 4 + 2);
        assert_eq!(scale_place(128, 4, blocks), 3 * 512);
    }

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
