//! The geometric mean of speed-ups across workloads.

use crate::cards::mean_elsewhere;
use serde::{Deserialize, Serialize};

/// Geometric mean with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Geomean {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub count: usize,
}

/// Geometric mean of `(ratio, low, high)` triples.
///
/// The workloads are a fixed list, not draws from a population, so the interval covers measurement
/// error and what another card would change, nothing else: in logarithms the distances to each end add
/// in quadrature. `None` if there is nothing to average or a value is not positive and finite.
pub fn geomean(ratios: &[(f64, f64, f64)]) -> Option<Geomean> {
    weighted_geomean(ratios, &vec![1.0; ratios.len()])
}

/// The same where each ratio counts as much as its weight says.
pub fn weighted_geomean(ratios: &[(f64, f64, f64)], weights: &[f64]) -> Option<Geomean> {
    assert_eq!(ratios.len(), weights.len(), "a weight for each ratio");
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let all_usable = ratios
        .iter()
        .all(|&(r, low, high)| usable(r) && usable(low) && usable(high));
    if ratios.is_empty() || !all_usable || !weights.iter().all(|&weight| usable(weight)) {
        return None;
    }
    let all: f64 = weights.iter().sum();
    let weighted = ratios.iter().zip(weights);
    let mean = weighted
        .map(|((ratio, ..), weight)| weight * ratio.ln())
        .sum::<f64>()
        / all;
    let distance = |end: &dyn Fn(&(f64, f64, f64)) -> f64| {
        ratios
            .iter()
            .zip(weights)
            .map(|(triple, weight)| (weight * (end(triple) / triple.0).ln()).powi(2))
            .sum::<f64>()
            .sqrt()
            / all
    };
    let (low, high) = mean_elsewhere(
        mean.exp(),
        (mean - distance(&|triple| triple.1)).exp(),
        (mean + distance(&|triple| triple.2)).exp(),
        weights,
    );
    Some(Geomean {
        ratio: mean.exp(),
        low,
        high,
        count: ratios.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_ratios_cancel() {
        let mean = geomean(&[(2.0, 1.9, 2.1), (0.5, 0.49, 0.51)]).unwrap();
        assert!((mean.ratio - 1.0).abs() < 1e-12);
        assert!(mean.low < 1.0 && mean.high > 1.0);
        assert_eq!(mean.count, 2);
    }

    #[test]
    fn a_weight_counts_as_often() {
        let (one, other) = ((1.2, 1.1, 1.3), (0.9, 0.88, 0.95));
        let weighted = weighted_geomean(&[one, other], &[3.0, 1.0]).unwrap();
        let repeated = geomean(&[one, one, one, other]).unwrap();
        assert!((weighted.ratio - repeated.ratio).abs() < 1e-12);
        // Three draws of one measurement have one error, not three independent ones.
        assert!(weighted.low < repeated.low && weighted.high > repeated.high);
        let equal = weighted_geomean(&[one, other], &[7.0, 7.0]).unwrap();
        let plain = geomean(&[one, other]).unwrap();
        assert!((equal.ratio - plain.ratio).abs() < 1e-12 && (equal.low - plain.low).abs() < 1e-12);
        assert_eq!(weighted_geomean(&[one, other], &[1.0, 0.0]), None);
    }

    #[test]
    fn one_workload_has_its_interval_elsewhere() {
        let mean = geomean(&[(1.5, 1.4, 1.7)]).unwrap();
        let (low, high) = crate::elsewhere(1.5, 1.4, 1.7);
        assert!((mean.low - low).abs() < 1e-12 && (mean.high - high).abs() < 1e-12);
    }

    #[test]
    fn more_workloads_narrow_the_interval() {
        let one = geomean(&[(1.1, 1.09, 1.11)]).unwrap();
        let four = geomean(&[(1.1, 1.09, 1.11); 4]).unwrap();
        let half = |mean: Geomean| (mean.high / mean.ratio).ln();
        assert!(half(four) < 0.7 * half(one) && half(four) > 0.5 * half(one));
    }

    #[test]
    fn refuses_nothing_and_zero() {
        assert_eq!(geomean(&[]), None);
        assert_eq!(geomean(&[(1.0, 0.0, 1.0)]), None);
    }
}
