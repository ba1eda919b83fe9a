//! Summary statistics of one contender's samples.

use crate::StatsError;
use serde::{Deserialize, Serialize};

/// Order statistics and moments of a set of samples, in the unit of the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub count: usize,
    pub median: f64,
    pub mean: f64,
    /// Sample standard deviation (n - 1); undefined for one sample.
    pub std: Option<f64>,
    pub min: f64,
    pub max: f64,
    pub p5: f64,
    pub p95: f64,
    pub p99: f64,
    /// Median absolute deviation from the median, not scaled.
    pub mad: f64,
}

impl Summary {
    pub fn of(samples: &[f64]) -> Result<Summary, StatsError> {
        if samples.is_empty() {
            return Err(StatsError::Empty);
        }
        if let Some(index) = samples.iter().position(|value| !value.is_finite()) {
            return Err(StatsError::BadSample {
                index,
                value: samples[index],
            });
        }
        let sorted = sorted(samples);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares = sorted
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        let median = quantile(&sorted, 0.5);
        let deviations: Vec<f64> = samples.iter().map(|value| (value - median).abs()).collect();
        Ok(Summary {
            count,
            median,
            mean,
            std: (count > 1).then(|| (squares / (count - 1) as f64).sqrt()),
            min: sorted[0],
            max: sorted[count - 1],
            p5: quantile(&sorted, 0.05),
            p95: quantile(&sorted, 0.95),
            p99: quantile(&sorted, 0.99),
            mad: quantile(&self::sorted(&deviations), 0.5),
        })
    }
}

/// Quantile of ascending values by linear interpolation (type 7: R's and NumPy's default).
///
/// # Panics
/// If `sorted` is empty or `probability` is outside [0, 1].
pub fn quantile(sorted: &[f64], probability: f64) -> f64 {
    assert!(!sorted.is_empty(), "quantile of no values");
    assert!(
        (0.0..=1.0).contains(&probability),
        "probability {probability} outside [0, 1]"
    );
    let position = probability * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0, 100.0]).unwrap();
        assert_eq!(summary.count, 5);
        assert_eq!(summary.median, 3.0);
        assert_eq!(summary.mean, 22.0);
        assert_eq!(summary.mad, 1.0);
        assert_eq!((summary.min, summary.max), (1.0, 100.0));
        assert!((summary.std.unwrap() - 43.617_656).abs() < 1e-5);
        assert!((summary.p5 - 1.2).abs() < 1e-12);
        assert!((summary.p95 - 80.8).abs() < 1e-12);
    }

    #[test]
    fn one_sample_has_no_deviation() {
        let summary = Summary::of(&[2.5]).unwrap();
        assert_eq!(summary.std, None);
        assert_eq!(summary.p99, 2.5);
    }

    #[test]
    fn refuses_nothing_and_nan() {
        assert_eq!(Summary::of(&[]), Err(StatsError::Empty));
        assert!(matches!(
            Summary::of(&[1.0, f64::NAN]),
            Err(StatsError::BadSample { index: 1, .. })
        ));
    }

    proptest! {
        #[test]
        fn order_statistics_are_ordered(samples in prop::collection::vec(0.01f64..1e6, 1..200)) {
            let s = Summary::of(&samples).unwrap();
            let ladder = [s.min, s.p5, s.median, s.p95, s.p99, s.max];
            prop_assert!(ladder.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(s.mad >= 0.0 && s.mad <= s.max - s.min);
            prop_assert!(s.mean >= s.min * (1.0 - 1e-12) && s.mean <= s.max * (1.0 + 1e-12));
        }
    }
}
