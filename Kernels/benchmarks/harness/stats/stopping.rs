//! When a measurement is precise enough to end.
//!
//! Called after every round, but evaluated only at checkpoints that grow by a quarter, so the total
//! cost is a small multiple of the last evaluation. A race ends with a whole period of its order,
//! so that every contender has been at every position, and has followed every other one, equally
//! often.

use crate::fit::Fit;
use crate::ratio::{fit_log, fit_log_ratio};
use crate::{latin_square_period, Rounds, StatsError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The conditions for ending the rounds of a workload. Widths are half-widths of the 95 %
/// confidence interval, relative to the ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Enough if the verdict is clear: the ratio clears the margin by twice the half-width.
    pub half_width: f64,
    /// Required if the ratio is near 1, where precision decides the verdict.
    pub half_width_near: f64,
    /// The equivalence margin of the verdict.
    pub margin: f64,
    pub rounds_min: usize,
    /// Minimum duration: noise slower than the whole measurement looks like no noise at all.
    pub duration_min: Duration,
    pub rounds_max: usize,
    pub budget: Duration,
    /// Exactly this many rounds, whole periods or not, instead of all of the above.
    pub rounds_fixed: Option<usize>,
}

impl Default for StoppingRule {
    fn default() -> Self {
        StoppingRule {
            half_width: 0.005,
            half_width_near: 0.002,
            margin: 0.005,
            rounds_min: 10,
            duration_min: Duration::from_millis(100),
            rounds_max: 10_000,
            budget: Duration::from_secs(2),
            rounds_fixed: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Every ratio is precise enough.
    Precise,
    /// The time budget is spent.
    Budget,
    /// The maximum number of rounds is reached.
    RoundsMax,
    /// The number of rounds was fixed by the user.
    RoundsFixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Continue,
    Stop(StopReason),
}

/// A rule applied to one workload: remembers its next checkpoint.
#[derive(Debug, Clone)]
pub struct Stopping {
    rule: StoppingRule,
    checkpoint: usize,
}

impl Stopping {
    pub fn new(rule: StoppingRule) -> Self {
        let checkpoint = rule.rounds_min;
        Stopping { rule, checkpoint }
    }

    /// Call after each round. `pairs` are the columns whose ratios must be precise; `elapsed` is the
    /// time spent on this workload's rounds so far.
    pub fn after_round(
        &mut self,
        rounds: &Rounds,
        pairs: &[(usize, usize)],
        elapsed: Duration,
    ) -> Decision {
        let count = rounds.len();
        if let Some(fixed) = self.rule.rounds_fixed {
            return match count >= fixed {
                true => Decision::Stop(StopReason::RoundsFixed),
                false => Decision::Continue,
            };
        }
        if !count.is_multiple_of(latin_square_period(rounds.contenders())) {
            return Decision::Continue;
        }
        if elapsed >= self.rule.duration_min && count >= self.checkpoint {
            self.checkpoint = count + (count / 4).max(1);
            if self.is_precise(rounds, pairs) {
                return Decision::Stop(StopReason::Precise);
            }
        }
        if elapsed >= self.rule.budget && count >= self.rule.rounds_min {
            return Decision::Stop(StopReason::Budget);
        }
        if count >= self.rule.rounds_max {
            return Decision::Stop(StopReason::RoundsMax);
        }
        Decision::Continue
    }

    fn is_precise(&self, rounds: &Rounds, pairs: &[(usize, usize)]) -> bool {
        if pairs.is_empty() {
            // Without a ratio there is no verdict, only times.
            return (0..rounds.contenders()).all(|contender| {
                fit_log(&rounds.kept(contender))
                    .is_ok_and(|fit| fit.half_width() <= self.rule.half_width)
            });
        }
        pairs
            .iter()
            .map(|&(first, second)| {
                let (first, second) = rounds.pairs(first, second);
                fit_log_ratio(&first, &second)
            })
            .all(|fit| self.is_precise_pair(fit))
    }

    fn is_precise_pair(&self, fit: Result<Fit, StatsError>) -> bool {
        let Ok(fit) = fit else { return false };
        let half_width = fit.half_width();
        let clearance = fit.location.abs() - self.rule.margin.ln_1p();
        half_width <= self.rule.half_width_near
            || (half_width <= self.rule.half_width && clearance >= 2.0 * half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two contenders, the second `ratio` times as long, with a deterministic wobble.
    fn rounds(count: usize, ratio: f64, wobble: f64) -> Rounds {
        let mut rounds = Rounds::new(2);
        for round in 0..count {
            let phase = (round * 7919 % 101) as f64 / 101.0 - 0.5;
            rounds.push(&[Some(10.0), Some(10.0 * ratio * (1.0 + wobble * phase))]);
        }
        rounds
    }

    fn first_stop(rule: StoppingRule, ratio: f64, wobble: f64) -> (usize, StopReason) {
        let mut stopping = Stopping::new(rule);
        for count in 1.. {
            // Each round takes a millisecond.
            let elapsed = Duration::from_millis(count as u64);
            if let Decision::Stop(reason) =
                stopping.after_round(&rounds(count, ratio, wobble), &[(0, 1)], elapsed)
            {
                return (count, reason);
            }
        }
        unreachable!("the rule never stopped")
    }

    fn hasty() -> StoppingRule {
        StoppingRule {
            duration_min: Duration::ZERO,
            ..Default::default()
        }
    }

    #[test]
    fn quiet_data_stop_at_the_minimum() {
        assert_eq!(first_stop(hasty(), 1.0, 1e-4), (10, StopReason::Precise));
        assert_eq!(
            first_stop(StoppingRule::default(), 1.0, 1e-4),
            (100, StopReason::Precise)
        );
    }

    #[test]
    fn near_the_margin_takes_more_rounds_than_far_from_it() {
        let (near, _) = first_stop(hasty(), 1.004, 0.03);
        let (far, _) = first_stop(hasty(), 1.5, 0.03);
        assert!(near > 2 * far, "near {near}, far {far}");
    }

    #[test]
    fn budget_and_counts_end_noisy_data() {
        let short = StoppingRule {
            budget: Duration::from_millis(40),
            ..Default::default()
        };
        assert_eq!(first_stop(short, 1.0, 2.0), (40, StopReason::Budget));
        let few = StoppingRule {
            rounds_max: 30,
            ..Default::default()
        };
        assert_eq!(first_stop(few, 1.0, 2.0), (30, StopReason::RoundsMax));
        let fixed = StoppingRule {
            rounds_fixed: Some(3),
            ..Default::default()
        };
        assert_eq!(first_stop(fixed, 1.0, 0.0), (3, StopReason::RoundsFixed));
    }

    #[test]
    fn budget_never_cuts_below_the_minimum() {
        let spent = StoppingRule {
            budget: Duration::ZERO,
            ..Default::default()
        };
        assert_eq!(first_stop(spent, 1.0, 2.0).0, 10);
    }

    #[test]
    fn one_contender_stops_on_its_own_precision() {
        let mut stopping = Stopping::new(StoppingRule::default());
        let mut rounds = Rounds::new(1);
        for round in 0..10 {
            rounds.push(&[Some(3.0 + 1e-4 * f64::from(round))]);
        }
        let decision = stopping.after_round(&rounds, &[], Duration::from_secs(1));
        assert_eq!(decision, Decision::Stop(StopReason::Precise));
    }

    #[test]
    fn a_race_ends_with_a_whole_period() {
        for contenders in 1..=9 {
            let period = latin_square_period(contenders);
            for reason in [
                StopReason::Precise,
                StopReason::Budget,
                StopReason::RoundsMax,
            ] {
                let rule = StoppingRule {
                    duration_min: match reason {
                        StopReason::Precise => Duration::ZERO,
                        _ => Duration::MAX,
                    },
                    budget: match reason {
                        StopReason::Budget => Duration::ZERO,
                        _ => Duration::MAX,
                    },
                    rounds_max: 25,
                    ..Default::default()
                };
                let mut stopping = Stopping::new(rule);
                let mut rounds = Rounds::new(contenders);
                let stopped = loop {
                    let wobble = 1.0 + 1e-4 * (rounds.len() % 7) as f64;
                    rounds.push(&vec![Some(3.0 * wobble); contenders]);
                    let pairs = if contenders > 1 { &[(0, 1)][..] } else { &[] };
                    if let Decision::Stop(stopped) =
                        stopping.after_round(&rounds, pairs, Duration::from_secs(1))
                    {
                        break stopped;
                    }
                };
                let least = if reason == StopReason::RoundsMax {
                    25
                } else {
                    10usize
                };
                let whole = least.next_multiple_of(period);
                assert_eq!((rounds.len(), stopped), (whole, reason), "{contenders}");
            }
        }
    }
}
