//! How a workload is timed.

use std::time::Duration;

use numeric::{bits, index_below};
use serde::{Deserialize, Serialize};
use stats::{ClockFilter, StoppingRule};

/// What the last-level cache holds when the timed region starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// None of the inputs.
    Cold,
    /// What the same work has just left there.
    Hot,
}

/// How the work gets onto the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// By calls of the contender.
    Direct,
    /// By replaying a graph captured from those calls.
    Graph,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timer {
    /// The whole operation, between marks around it on the stream.
    Op,
    /// From the start of its first kernel to the end of its last, by the activity tracer.
    Kernel,
}

/// The protocol of one race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub cache: CacheState,
    pub launch: Launch,
    pub timer: Timer,
    /// Warm-up per contender before the first round.
    pub warmup: Duration,
    /// Timed work per contender, instead of the adaptive stop.
    pub repeat: Option<Duration>,
    pub rule: StoppingRule,
    /// Work per contender for the energy meter after the race; none by default.
    pub energy: Option<Duration>,
    pub clock_filter: ClockFilter,
    /// Determines the order of contenders and which rounds are checked.
    pub seed: u64,
}

/// After the first ones, one in this many rounds is checked.
const CHECKED_ONE_IN: u32 = 64;
/// Random streams of the plan, separate from those of tensors.
const FIRST_CHECK_STREAM: u32 = u32::MAX - 1;
const CHECK_STREAM: u32 = u32::MAX - 2;

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self {
            cache: CacheState::Cold,
            launch: Launch::Direct,
            timer: Timer::Op,
            warmup: Duration::from_millis(25),
            repeat: None,
            rule: StoppingRule::default(),
            energy: None,
            clock_filter: ClockFilter::default(),
            seed,
        }
    }

    /// The stopping rule if the slowest contender takes `slowest_us`.
    pub(crate) fn rule_for(&self, slowest_us: f64) -> StoppingRule {
        let mut rule = self.rule.clone();
        if let (Some(repeat), None) = (self.repeat, rule.rounds_fixed) {
            let rounds = (repeat.as_secs_f64() * 1e6 / slowest_us.max(1e-3)).ceil() as usize;
            rule.rounds_fixed = Some(rounds.clamp(rule.rounds_min, rule.rounds_max));
        }
        rule
    }

    /// Whether the outputs of a round are checked. One of the first rounds always is.
    pub(crate) fn is_checked(&self, round: usize) -> bool {
        let sure = self
            .rule
            .rounds_fixed
            .unwrap_or(self.rule.rounds_min)
            .min(self.rule.rounds_min);
        let first = index_below(bits(self.seed, FIRST_CHECK_STREAM, 0), sure.max(1) as u32);
        round == first as usize
            || index_below(bits(self.seed, CHECK_STREAM, round as u64), CHECKED_ONE_IN) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_first_rounds_is_always_checked() {
        for seed in 0..200 {
            let mut plan = Plan::new(seed);
            assert!((0..plan.rule.rounds_min).any(|round| plan.is_checked(round)));
            plan.rule.rounds_fixed = Some(1);
            assert!(plan.is_checked(0));
        }
    }

    #[test]
    fn repeat_time_becomes_a_count_of_rounds() {
        let mut plan = Plan::new(0);
        assert_eq!(plan.rule_for(100.0).rounds_fixed, None);
        plan.repeat = Some(Duration::from_millis(10));
        assert_eq!(plan.rule_for(100.0).rounds_fixed, Some(100));
        assert_eq!(plan.rule_for(1e6).rounds_fixed, Some(plan.rule.rounds_min));
    }
}
