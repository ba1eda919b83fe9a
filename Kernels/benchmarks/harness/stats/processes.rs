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
    let fits = processes
        .iter()
        .map(|(baseline, contender)| fit_log_ratio(baseline, contender))
        .collect::<Result<Vec<Fit>, _>>()?;
    if fits.is_empty() {
        return Err(StatsError::Empty);
    }
    let count = fits.len() as f64;
    let mean = |of: &dyn Fn(&Fit) -> f64| fits.iter().map(of).sum::<f64>() / count;
    let location = mean(&|fit| fit.location);
    let within = mean(&|fit| fit.standard_error().powi(2));
    let degrees = count - 1.0;
    let seen = mean(&|fit| (fit.location - location).powi(2)) * count / degrees;
    let half_width = half_width(seen, within, degrees);
    let (low, high) = ((location - half_width).exp(), (location + half_width).exp());
    Ok(PairedRatio {
        ratio: location.exp(),
        low,
        high,
        pairs: processes.iter().map(|(baseline, _)| baseline.len()).sum(),
        verdict: verdict(low, high, options.margin),
    })
}

/// Half-width of the 95 % interval of the mean, from the variance seen between the processes'
/// locations (with its degrees of freedom) and the variance within each.
fn half_width(seen: f64, within: f64, degrees: f64) -> f64 {
    let expected = SPREAD_BETWEEN_PROCESSES.powi(2) + within;
    let contradiction = (seen / expected - 1.0).max(0.0);
    let prior = PRIOR_DEGREES * (-contradiction).exp();
    let variance = (prior * expected + degrees * seen) / (prior + degrees);
    student_975(prior + degrees) * (variance / (degrees + 1.0)).sqrt()
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
        let spread = SPREAD_BETWEEN_PROCESSES;
        let lucky = half_width(0.0, 0.0, 2.0);
        assert!(lucky > 1.4 * spread / 3f64.sqrt(), "{lucky}");
        // What contradicts the expectation is judged by itself, whatever was expected.
        let wild = half_width(1e-4, 0.0, 2.0);
        assert!((wild / (4.303 * (1e-4f64 / 3.0).sqrt()) - 1.0).abs() < 0.04);
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
        assert_eq!(none, Err(StatsError::Empty));
    }
}
