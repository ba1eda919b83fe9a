//! The geometric mean of speed-ups across workloads.

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
/// error only: in logarithms the distances to each end add in quadrature. `None` if there is
/// nothing to average or a value is not positive and finite.
pub fn geomean(ratios: &[(f64, f64, f64)]) -> Option<Geomean> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let all_usable = ratios
        .iter()
        .all(|&(r, low, high)| usable(r) && usable(low) && usable(high));
    if ratios.is_empty() || !all_usable {
        return None;
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().map(|(ratio, ..)| ratio.ln()).sum::<f64>() / count;
    let distance = |end: &dyn Fn(&(f64, f64, f64)) -> f64| {
        ratios
            .iter()
            .map(|triple| (end(triple) / triple.0).ln().powi(2))
            .sum::<f64>()
            .sqrt()
            / count
    };
    Some(Geomean {
        ratio: mean.exp(),
        low: (mean - distance(&|triple| triple.1)).exp(),
        high: (mean + distance(&|triple| triple.2)).exp(),
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
    fn one_workload_keeps_its_interval() {
        let mean = geomean(&[(1.5, 1.4, 1.7)]).unwrap();
        assert!((mean.low - 1.4).abs() < 1e-12 && (mean.high - 1.7).abs() < 1e-12);
    }

    #[test]
    fn more_workloads_narrow_the_interval() {
        let one = geomean(&[(1.1, 1.09, 1.11)]).unwrap();
        let four = geomean(&[(1.1, 1.09, 1.11); 4]).unwrap();
        let half = |mean: Geomean| (mean.high / mean.ratio).ln();
        assert!((half(four) * 2.0 - half(one)).abs() < 1e-12);
    }

    #[test]
    fn refuses_nothing_and_zero() {
        assert_eq!(geomean(&[]), None);
        assert_eq!(geomean(&[(1.0, 0.0, 1.0)]), None);
    }
}
