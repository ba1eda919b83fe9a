//! The error function, which std does not have.

/// Within a few ulp: all terms of the series are positive, so none cancel.
pub fn erf(x: f64) -> f64 {
    const BEYOND: f64 = 6.0;
    if x.is_nan() {
        return x;
    }
    if x.abs() >= BEYOND {
        // 1 - erf(6) is below half an ulp.
        return x.signum();
    }
    // erf(x) = 2 / sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * ... * (2n+1))
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > sum.abs() * f64::EPSILON / 8.0 {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (x, right) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (4.0, 0.999_999_984_582_742_1),
            (7.0, 1.0),
        ] {
            assert!((erf(x) - right).abs() < 4e-16, "erf({x}) is {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!(erf(f64::NAN).is_nan());
    }
}
