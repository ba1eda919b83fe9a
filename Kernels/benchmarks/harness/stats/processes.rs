//! The speed-up from several processes, with the spread between them in its interval.
//!
//! A process keeps what it was given when it started: where its buffers and code lie, what an
//! algorithm search found. Rounds cannot average that out, so the unit of data is the process: its
//! location (see `fit`) is one observation, and the speed-up is their mean.
//!
//! Three observations say little about their own spread; Student's t with two degrees of freedom
//! would make every interval useless. As in Smyth (2004), who had three arrays for each of many
//! genes, the variance is therefore moderated: it is averaged with the one expected beforehand,
//! weighted by degrees of freedom. Where the observations contradict that expectation, its weight
//! goes to zero (as in Phipson and others, 2016), and Student's t takes over.

use crate::fit::{student_975, Fit};
use crate::ratio::fit_log_ratio;
use crate::{paired_ratio, verdict, PairedRatio, RatioOptions, StatsError};

/// Expected standard deviation between processes of a ratio's logarithm.
pub const SPREAD_BETWEEN_PROCESSES: f64 = 0.002;
/// What that expectation weighs, in degrees of freedom.
const PRIOR_DEGREES: f64 = 4.0;

/// Speed-up of a contender over a baseline. Each process has the samples of both, baseline first;
/// entry `i` of the two comes from the same round. A single process has no spread to add.
pub fn paired_ratio_of_processes(
    processes: &[(Vec<f64>, Vec<f64>)],
    options: &RatioOptions,
) -> Result<PairedRatio, StatsError> {
    if let [(baseline, contender)] = processes {
        return paired_ratio(baseline, contender, options);
    }
    let spread = ProcessSpread::of(processes)?;
    let half_width = spread.half_width();
    let (low, high) = (
        (spread.location - half_width).exp(),
        (spread.location + half_width).exp(),
    );
    Ok(PairedRatio {
        ratio: spread.location.exp(),
        low,
        high,
        pairs: processes.iter().map(|(baseline, _)| baseline.len()).sum(),
        verdict: verdict(low, high, options.margin),
    })
}

/// How far apart the processes of one ratio are, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessSpread {
    location: f64,
    /// Variance seen between the processes' locations, with one degree of freedom less than there
    /// are processes.
    seen: f64,
    degrees: f64,
    /// Variance of a location as its own rounds show it.
    within: f64,
}

impl ProcessSpread {
    /// Of two processes or more, each with the samples of both contenders.
    pub fn of(processes: &[(Vec<f64>, Vec<f64>)]) -> Result<ProcessSpread, StatsError> {
        let fits = processes
            .iter()
            .map(|(baseline, contender)| fit_log_ratio(baseline, contender))
            .collect::<Result<Vec<Fit>, _>>()?;
        if fits.len() < 2 {
            return Err(StatsError::TooFewProcesses(fits.len()));
        }
        let count = fits.len() as f64;
        let mean = |of: &dyn Fn(&Fit) -> f64| fits.iter().map(of).sum::<f64>() / count;
        let location = mean(&|fit| fit.location);
        let degrees = count - 1.0;
        Ok(ProcessSpread {
            location,
            seen: mean(&|fit| (fit.location - location).powi(2)) * count / degrees,
            degrees,
            within: mean(&|fit| fit.standard_error().powi(2)),
        })
    }

    /// Of the 95 % interval of the mean.
    fn half_width(&self) -> f64 {
        let expected = SPREAD_BETWEEN_PROCESSES.powi(2) + self.within;
        let contradiction = (self.seen / expected - 1.0).max(0.0);
        let prior = PRIOR_DEGREES * (-contradiction).exp();
        let degrees = prior + self.degrees;
        let variance = (prior * expected + self.degrees * self.seen) / degrees;
        student_975(degrees) * (variance / (self.degrees + 1.0)).sqrt()
    }
}

/// Standard deviation between processes beyond what rounds explain, such that half of the ratios
/// show more and half less: what [`SPREAD_BETWEEN_PROCESSES`] expects. None without ratios.
pub fn typical_spread(spreads: &[ProcessSpread]) -> Option<f64> {
    let more = |deviation: f64| {
        let above = spreads.iter().filter(|spread| {
            // Median of chi-squared over its degrees of freedom (Wilson and Hilferty).
            let median = (1.0 - 2.0 / (9.0 * spread.degrees)).powi(3);
            spread.seen > median * (deviation.powi(2) + spread.within)
        });
        2 * above.count() > spreads.len()
    };
    if spreads.is_empty() {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match more(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// One process: 40 rounds with a deterministic wobble of half a percent around `ratio`.
    fn process(ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let wobble = |round: usize| 1.0 + 0.005 * ((round * 7919 % 101) as f64 / 101.0 - 0.5);
        let contender = (0..40).map(|round| 10.0 * wobble(round)).collect();
        (vec![10.0 * ratio; 40], contender)
    }

    fn of(ratios: &[f64]) -> PairedRatio {
        let processes: Vec<_> = ratios.iter().map(|ratio| process(*ratio)).collect();
        paired_ratio_of_processes(&processes, &RatioOptions::default()).unwrap()
    }

    #[test]
    fn one_process_is_a_plain_ratio() {
        let (baseline, contender) = process(1.02);
        let plain = paired_ratio(&baseline, &contender, &RatioOptions::default()).unwrap();
        assert_eq!(of(&[1.02]), plain);
    }

    #[test]
    fn processes_that_agree_decide_and_those_that_do_not_leave_it_open() {
        let agreed = of(&[1.02, 1.0202, 1.0198]);
        assert_eq!((agreed.verdict, agreed.pairs), (Verdict::Faster, 120));
        assert!((agreed.ratio - 1.02).abs() < 0.002, "{agreed:?}");
        assert!(agreed.high / agreed.low < 1.006, "{agreed:?}");
        let torn = of(&[1.0, 1.02, 1.04]);
        assert_eq!(torn.verdict, Verdict::Ambiguous);
        assert!(torn.low < 1.0 && torn.high > 1.04, "{torn:?}");
        assert_eq!(of(&[1.0, 1.0005, 0.9995]).verdict, Verdict::Same);
    }

    #[test]
    fn agreement_by_chance_is_not_believed() {
        let half_width = |seen| {
            let spread = ProcessSpread {
                location: 0.0,
                seen,
                degrees: 2.0,
                within: 0.0,
            };
            spread.half_width()
        };
        let lucky = half_width(0.0);
        assert!(
            lucky > 1.4 * SPREAD_BETWEEN_PROCESSES / 3f64.sqrt(),
            "{lucky}"
        );
        // What contradicts the expectation is judged by itself, whatever was expected.
        let wild = half_width(1e-4);
        assert!((wild / (4.303 * (1e-4f64 / 3.0).sqrt()) - 1.0).abs() < 0.04);
    }

    #[test]
    fn the_typical_spread_is_found_and_a_few_wild_ones_do_not_matter() {
        let apart = |step: f64| {
            let ratios = [1.0 - step, 1.0, 1.0 + step];
            ProcessSpread::of(&ratios.map(process)).unwrap()
        };
        // The median of chi-squared with two degrees of freedom is 1.39: 0.003 stands for 0.0036.
        let mut spreads = vec![apart(0.003); 9];
        let calm = typical_spread(&spreads).unwrap();
        assert!((calm - 0.0036).abs() < 0.0002, "{calm}");
        spreads.extend([apart(0.2); 3]);
        assert_eq!(typical_spread(&spreads), Some(calm));
        assert_eq!(typical_spread(&[]), None);
        assert!(typical_spread(&[apart(0.0)]).unwrap() < 1e-9);
    }

    #[test]
    fn every_process_needs_pairs() {
        let short = (vec![1.0; 4], vec![1.0; 4]);
        let result = paired_ratio_of_processes(&[process(1.0), short], &RatioOptions::default());
        assert!(matches!(
            result,
            Err(StatsError::TooFewPairs { got: 4, .. })
        ));
        let none = paired_ratio_of_processes(&[], &RatioOptions::default());
        assert_eq!(none, Err(StatsError::TooFewProcesses(0)));
    }
}
