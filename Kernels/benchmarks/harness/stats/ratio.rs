//! The speed-up of a contender over a baseline, from samples paired by round.
//!
//! Each round gives ln(baseline time / contender time); drift and throttling that last longer than
//! a round cancel in it. The ratio is the robust location of those logarithms (see `fit`),
//! exponentiated; above 1 the contender is faster.

use crate::fit::{resolution, Fit};
use crate::StatsError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Minimum number of pairs for a meaningful interval.
const PAIRS_MIN: usize = 5;

/// A speed-up with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// Baseline time over contender time.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub pairs: usize,
    pub verdict: Verdict,
}

/// What a speed-up's interval says about the contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is beyond the margin on the fast side.
    Faster,
    /// The whole interval is beyond the margin on the slow side.
    Slower,
    /// The whole interval is within the margin.
    Same,
    /// The interval straddles an edge of the margin: undecided.
    Ambiguous,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Ambiguous => "ambiguous",
        })
    }
}

/// How to turn pairs into a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioOptions {
    /// Relative differences smaller than this do not count.
    pub margin: f64,
    pub resamples: usize,
    pub seed: u64,
}

impl Default for RatioOptions {
    fn default() -> Self {
        RatioOptions {
            margin: 0.005,
            resamples: 2000,
            seed: 0,
        }
    }
}

/// Speed-up of `contender` over `baseline`; entry `i` of both comes from the same round.
pub fn paired_ratio(
    baseline: &[f64],
    contender: &[f64],
    options: &RatioOptions,
) -> Result<PairedRatio, StatsError> {
    let fit = fit_log_ratio(baseline, contender)?;
    let (low, high) = fit.interval(options.resamples, options.seed);
    let (low, high) = (low.exp(), high.exp());
    Ok(PairedRatio {
        ratio: fit.location.exp(),
        low,
        high,
        pairs: baseline.len(),
        verdict: verdict(low, high, options.margin),
    })
}

/// The verdict that an interval supports; the margin is symmetric in logarithms.
pub fn verdict(low: f64, high: f64, margin: f64) -> Verdict {
    let (edge_slow, edge_fast) = (1.0 / (1.0 + margin), 1.0 + margin);
    if low > edge_fast {
        Verdict::Faster
    } else if high < edge_slow {
        Verdict::Slower
    } else if low >= edge_slow && high <= edge_fast {
        Verdict::Same
    } else {
        Verdict::Ambiguous
    }
}

pub(crate) fn fit_log_ratio(baseline: &[f64], contender: &[f64]) -> Result<Fit, StatsError> {
    if baseline.len() != contender.len() {
        return Err(StatsError::UnequalCounts {
            baseline: baseline.len(),
            contender: contender.len(),
        });
    }
    if baseline.len() < PAIRS_MIN {
        return Err(StatsError::TooFewPairs {
            got: baseline.len(),
            need: PAIRS_MIN,
        });
    }
    check(baseline)?;
    check(contender)?;
    let logs: Vec<f64> = baseline
        .iter()
        .zip(contender)
        .map(|(b, c)| (b / c).ln())
        .collect();
    let pooled: Vec<f64> = baseline.iter().chain(contender).copied().collect();
    Ok(Fit::new(&logs, relative_resolution(&pooled)))
}

/// Location of the logarithms of one contender's samples, for the case without a baseline.
pub(crate) fn fit_log(samples: &[f64]) -> Result<Fit, StatsError> {
    if samples.len() < PAIRS_MIN {
        return Err(StatsError::TooFewPairs {
            got: samples.len(),
            need: PAIRS_MIN,
        });
    }
    check(samples)?;
    let logs: Vec<f64> = samples.iter().map(|sample| sample.ln()).collect();
    Ok(Fit::new(&logs, relative_resolution(samples)))
}

fn relative_resolution(samples: &[f64]) -> f64 {
    resolution(samples) * samples.len() as f64 / samples.iter().sum::<f64>()
}

fn check(samples: &[f64]) -> Result<(), StatsError> {
    match samples
        .iter()
        .position(|value| !(value.is_finite() && *value > 0.0))
    {
        Some(index) => Err(StatsError::BadSample {
            index,
            value: samples[index],
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn verdicts_follow_the_interval() {
        assert_eq!(verdict(1.006, 1.02, 0.005), Verdict::Faster);
        assert_eq!(verdict(0.97, 0.994, 0.005), Verdict::Slower);
        assert_eq!(verdict(0.996, 1.004, 0.005), Verdict::Same);
        assert_eq!(verdict(1.001, 1.02, 0.005), Verdict::Ambiguous);
        assert_eq!(verdict(0.9, 1.1, 0.005), Verdict::Ambiguous);
        assert_eq!(verdict(f64::NAN, f64::NAN, 0.005), Verdict::Ambiguous);
    }

    #[test]
    fn refuses_what_cannot_be_paired() {
        let options = RatioOptions::default();
        assert!(matches!(
            paired_ratio(&[1.0; 4], &[1.0; 4], &options),
            Err(StatsError::TooFewPairs { got: 4, need: 5 })
        ));
        assert!(matches!(
            paired_ratio(&[1.0; 6], &[1.0; 5], &options),
            Err(StatsError::UnequalCounts { .. })
        ));
        let bad = [1.0, 1.0, 0.0, 1.0, 1.0];
        assert!(matches!(
            paired_ratio(&bad, &[1.0; 5], &options),
            Err(StatsError::BadSample { index: 2, .. })
        ));
    }

    #[test]
    fn common_slow_down_cancels() {
        let baseline: Vec<f64> = (0..200)
            .map(|round| 10.0 + f64::from(round) * 0.05)
            .collect();
        let contender: Vec<f64> = baseline.iter().map(|time| time / 1.25).collect();
        let result = paired_ratio(&baseline, &contender, &RatioOptions::default()).unwrap();
        assert!((result.ratio - 1.25).abs() < 1e-9);
        assert_eq!(result.verdict, Verdict::Faster);
    }

    proptest! {
        #[test]
        fn ratio_lies_in_its_interval_and_inverts(
            pairs in prop::collection::vec((1.0f64..100.0, 1.0f64..100.0), 5..120),
            seed in any::<u64>(),
        ) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let options = RatioOptions { resamples: 200, seed, ..RatioOptions::default() };
            let forth = paired_ratio(&first, &second, &options).unwrap();
            let back = paired_ratio(&second, &first, &options).unwrap();
            prop_assert!(forth.low <= forth.ratio && forth.ratio <= forth.high);
            prop_assert!((forth.ratio * back.ratio - 1.0).abs() < 1e-6);
            prop_assert_eq!(forth, paired_ratio(&first, &second, &options).unwrap());
        }

        #[test]
        fn units_do_not_matter(
            pairs in prop::collection::vec((1.0f64..100.0, 1.0f64..100.0), 5..60),
        ) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let scale = |times: &[f64]| times.iter().map(|time| time * 1000.0).collect::<Vec<_>>();
            let options = RatioOptions { resamples: 100, ..RatioOptions::default() };
            let micro = paired_ratio(&first, &second, &options).unwrap();
            let nano = paired_ratio(&scale(&first), &scale(&second), &options).unwrap();
            prop_assert!((micro.ratio / nano.ratio - 1.0).abs() < 1e-9);
        }
    }
}
