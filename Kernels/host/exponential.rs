//! e^x in a form that vectorises: no branches, no table.

/// Within 2 ulp for x <= 88; 0 below -87.3, so that no result is subnormal.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts: products of the first with small integers are exact.
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    const SMALLEST: f32 = -87.3;
    let bounded = if x < SMALLEST { SMALLEST } else { x };
    let power = bounded * LOG2_E + ROUND;
    let whole = power - ROUND;
    let rest = bounded - whole * LN_2_HIGH - whole * LN_2_LOW;
    // Minimax polynomial of e^r - 1 - r over |r| <= ln(2) / 2, from Cephes' expf.
    let mut sum = 1.987_569_1e-4f32;
    for coefficient in [
        1.398_2e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        5e-1,
    ] {
        sum = sum * rest + coefficient;
    }
    let fraction = sum * rest * rest + rest + 1.0;
    // The integer is in the low bits of `power`; shifted, it becomes the exponent.
    let scale = f32::from_bits((power.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if x < SMALLEST {
        0.0
    } else {
        fraction * scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_two_units() {
        for step in 0..200_000 {
            let x = -87.0 + step as f32 * (175.0 / 200_000.0);
            let right = f64::from(x).exp();
            let unit = right * f64::from(f32::EPSILON);
            let error = (f64::from(exp(x)) - right).abs() / unit;
            assert!(error <= 2.0, "exp({x}): {error} units");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-88.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }
}
