//! How much two runs of the same code differ beyond each run's own interval.

use stats::quantile;

/// The standard normal's quantile, by Acklam's rational approximation (relative error below 1.2e-9).
///
/// # Panics
/// If `probability` is outside (0, 1).
pub fn normal_quantile(probability: f64) -> f64 {
    assert!(
        probability > 0.0 && probability < 1.0,
        "probability {probability} outside (0, 1)"
    );
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
    ];
    const TAIL: f64 = 0.02425;
    let polynomial = |coefficients: &[f64], x: f64| {
        coefficients
            .iter()
            .fold(0.0, |sum, coefficient| sum * x + coefficient)
    };
    let tail = |probability: f64| {
        let q = (-2.0 * probability.ln()).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    };
    if probability < TAIL {
        tail(probability)
    } else if probability > 1.0 - TAIL {
        -tail(1.0 - probability)
    } else {
        let q = probability - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

/// Run-to-run standard deviation, in logarithms, on top of the runs' own errors.
///
/// Most rows of a comparison did not change, so the spread of the changes around their median,
/// beyond the rows' own errors, comes from the machine (memory placement, clocks). It is taken from
/// the innermost half, so that rows that did change do not affect it.
pub fn spread_between_runs(changes: &[(f64, f64)]) -> f64 {
    /// A Gaussian's median absolute deviation, in standard deviations.
    const MEDIAN_DEVIATION: f64 = 0.674_489_750_196_082;
    let mut values: Vec<f64> = changes.iter().map(|(change, _)| *change).collect();
    values.sort_by(f64::total_cmp);
    let centre = quantile(&values, 0.5);
    let too_wide = |spread: f64| {
        let mut deviations: Vec<f64> = changes
            .iter()
            .map(|(change, error)| (change - centre).abs() / error.hypot(spread).max(1e-12))
            .collect();
        deviations.sort_by(f64::total_cmp);
        quantile(&deviations, 0.5) > MEDIAN_DEVIATION
    };
    if !too_wide(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match too_wide(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles() {
        for (probability, expected) in [
            (0.5, 0.0),
            (0.975, 1.959_963_985),
            (0.025, -1.959_963_985),
            (1.0 - 1e-6, 4.753_424_309),
            (0.001, -3.090_232_306),
        ] {
            assert!((normal_quantile(probability) - expected).abs() < 1e-7);
        }
    }

    #[test]
    fn errors_that_explain_the_spread_leave_none() {
        let changes: Vec<(f64, f64)> = (-10..=10)
            .map(|step| (f64::from(step) * 1e-4, 0.01))
            .collect();
        assert_eq!(spread_between_runs(&changes), 0.0);
    }

    #[test]
    fn a_few_real_changes_do_not_count_as_noise() {
        let mut changes: Vec<(f64, f64)> = (-20..=20)
            .map(|step| (f64::from(step) * 1e-4, 1e-5))
            .collect();
        let calm = spread_between_runs(&changes);
        changes.extend([(0.1, 1e-5); 5]);
        let shaken = spread_between_runs(&changes);
        assert!(calm > 1e-3 && calm < 3e-3, "{calm}");
        assert!(shaken < 1.5 * calm, "{shaken} after {calm}");
    }
}
