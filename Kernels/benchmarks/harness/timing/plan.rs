//! How a workload is timed.

use std::ops::Range;
use std::time::Duration;

use gate::Poison;
use numeric::{bits, index_below, one_way, stream_key};
use serde::{Deserialize, Serialize};
use stats::{latin_square_period, ClockFilter, StoppingRule};

use crate::Energy;

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
    /// A sample is a block of executions that takes at least this long, instead of one.
    pub steady: Option<Duration>,
    /// Warm-up per contender before the first round.
    pub warmup: Duration,
    /// Timed work per contender, instead of the adaptive stop.
    pub repeat: Option<Duration>,
    pub rule: StoppingRule,
    /// What the energy meter reads after the race; nothing by default.
    pub energy: Option<Energy>,
    /// Whether long executions are traced; short ones always are, for a second clock.
    pub trace: bool,
    pub clock_filter: ClockFilter,
    /// Determines the inputs.
    pub seed: u64,
    /// Determines the order of contenders.
    pub order: u64,
    /// Determines what is checked, and with what: nothing that a contender can know beforehand.
    pub entropy: u64,
}

/// What is done in a lane's turn besides timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Only timed.
    Plain,
    /// Outputs are checked after the sample; nothing is different before it.
    Checked,
    /// Checked, on inputs of this seed, which nobody has seen before.
    Fresh(u64),
}

/// The first two stretches of rounds. Later ones are twice as long as the one before: whoever is to gain from wrong
/// answers gives them in most rounds, and meets more checks the longer the race is.
const STRETCH: usize = 6;

/// Rounds of which one has fresh inputs, and in which every lane is checked at least once.
struct Stretch {
    index: u64,
    rounds: Range<usize>,
}

/// Random streams of the plan, separate from those of tensors.
const FRESH_STREAM: u32 = u32::MAX - 1;
const CHECK_STREAM: u32 = u32::MAX - 2;
const POISON_STREAM: u32 = u32::MAX - 3;
const SEED_STREAM: u32 = u32::MAX - 4;

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self {
            cache: CacheState::Cold,
            launch: Launch::Direct,
            timer: Timer::Op,
            steady: None,
            warmup: Duration::from_millis(25),
            repeat: None,
            rule: StoppingRule::default(),
            energy: None,
            trace: true,
            clock_filter: ClockFilter::default(),
            seed,
            order: seed,
            entropy: seed,
        }
    }

    /// The same with another order and other choices of what is checked, for `what`.
    pub fn for_another(&self, what: &str) -> Self {
        let mixed = |start: u64| {
            let bytes = what.bytes().map(u32::from);
            bytes.fold(start, stream_key)
        };
        Self {
            order: mixed(self.order),
            entropy: mixed(self.entropy),
            ..self.clone()
        }
    }

    /// The same with samples of one execution.
    pub(crate) fn single(&self) -> Self {
        Self {
            steady: None,
            ..self.clone()
        }
    }

    /// The stopping rule for some contenders of which the slowest takes `slowest_us`.
    pub(crate) fn rule_for(&self, contenders: usize, slowest_us: f64) -> StoppingRule {
        let mut rule = self.rule.clone();
        if let (Some(repeat), None) = (self.repeat, rule.rounds_fixed) {
            let rounds = (repeat.as_secs_f64() * 1e6 / slowest_us.max(1e-3)).ceil() as usize;
            let rounds = rounds.clamp(rule.rounds_min, rule.rounds_max);
            rule.rounds_fixed = Some(rounds.next_multiple_of(latin_square_period(contenders)));
        }
        rule
    }

    /// What happens in a lane's turn of a round. One of the first rounds always has fresh inputs, for everybody.
    pub(crate) fn turn(&self, lane: usize, round: usize) -> Round {
        match self.fresh(round) {
            Some(seed) => Round::Fresh(seed),
            None if self.checks(lane, round) => Round::Checked,
            None => Round::Plain,
        }
    }

    /// The seed of a round with fresh inputs.
    fn fresh(&self, round: usize) -> Option<u64> {
        let stretch = self.stretch(round);
        let bits = bits(self.entropy, FRESH_STREAM, stretch.index);
        let drawn = stretch.rounds.start + index_below(bits, stretch.rounds.len() as u32) as usize;
        (round == drawn).then(|| self.fresh_seed(stretch.index))
    }

    /// Whether a lane is checked. It could tell when others are, or when it was itself, by how long it was not called:
    /// neither says anything about now. Only who has not been checked in a stretch at all is, in its last round.
    fn checks(&self, lane: usize, round: usize) -> bool {
        let Stretch { rounds, .. } = self.stretch(round);
        let lane = stream_key(self.entropy, lane as u32);
        let drawn = |round| {
            let bits = bits(lane, CHECK_STREAM, round as u64);
            index_below(bits, rounds.len() as u32) == 0
        };
        drawn(round) || round + 1 == rounds.end && !rounds.clone().any(drawn)
    }

    fn stretch(&self, round: usize) -> Stretch {
        let first = STRETCH.min(self.rule.rounds_fixed.unwrap_or(STRETCH).max(1));
        let (mut rounds, mut index) = (0..first, 0);
        while round >= rounds.end {
            rounds = rounds.end..2 * rounds.end;
            index += 1;
        }
        Stretch { index, rounds }
    }

    /// The fresh inputs of the first `rounds` rounds.
    pub(crate) fn fresh_seeds(&self, rounds: usize) -> impl Iterator<Item = u64> + '_ {
        (0..rounds).filter_map(|round| self.fresh(round))
    }

    /// A seed that nothing else uses. Contenders see what follows from it, and could compute it from that.
    pub(crate) fn fresh_seed(&self, index: u64) -> u64 {
        one_way(self.entropy, SEED_STREAM, index)
    }

    /// What outputs hold before a sample: NaN or finite garbage, as the coin falls.
    pub(crate) fn poison(&self, turn: usize) -> Poison {
        match one_way(self.entropy, POISON_STREAM, turn as u64) {
            bits if bits % 2 == 0 => Poison::NotANumber,
            bits => Poison::Garbage(bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_rounds_have_fresh_inputs_and_some_are_only_checked() {
        let mut patterns = std::collections::BTreeSet::new();
        let mut checks = Vec::new();
        for entropy in 0..200 {
            let mut plan = Plan::new(42);
            plan.entropy = entropy;
            let rounds: Vec<Round> = (0..640).map(|round| plan.turn(0, round)).collect();
            let fresh = |rounds: &[Round]| {
                let fresh = rounds
                    .iter()
                    .filter(|round| matches!(round, Round::Fresh(_)));
                fresh.collect::<Vec<_>>().len()
            };
            let stretches = [0..6, 6..12, 12..24, 24..48, 48..96, 192..384];
            for stretch in stretches {
                assert_eq!(fresh(&rounds[stretch]), 1);
            }
            let checked = rounds.iter().filter(|round| **round == Round::Checked);
            checks.push(checked.count());
            patterns.insert(format!("{:?}", &rounds[..10]));
            plan.rule.rounds_fixed = Some(1);
            assert!(matches!(plan.turn(0, 0), Round::Fresh(_)));
        }
        assert!(patterns.len() > 150, "{}", patterns.len());
        // Of eight stretches, the last of which is cut off.
        assert!(
            checks.iter().all(|count| (3..=24).contains(count)),
            "{checks:?}"
        );
        let mean = checks.iter().sum::<usize>() as f64 / checks.len() as f64;
        assert!((7.0..12.0).contains(&mean), "{mean}");
    }

    /// How long it was not called tells a lane whose outputs were looked at meanwhile, and nothing else.
    #[test]
    fn checks_of_others_and_earlier_ones_say_nothing_about_the_next() {
        const STRETCH: Range<usize> = 96..192;
        let mut plan = Plan::new(42);
        let (mut checks, mut after_a_check, mut beside_a_check) = (0, 0, 0);
        for entropy in 0..4000 {
            plan.entropy = entropy;
            let of = |lane| STRETCH.map(move |round| (lane, round));
            let checked = |(lane, round)| plan.checks(lane, round);
            assert!(of(0).any(checked), "somebody is not checked at all");
            // The last round is another matter for who has not been checked.
            let rounds = STRETCH.start..STRETCH.end - 1;
            let mut known = false;
            for round in rounds {
                let (own, other) = (plan.checks(0, round), plan.checks(1, round));
                checks += usize::from(own);
                after_a_check += usize::from(known && own);
                beside_a_check += usize::from(other && own);
                known |= own;
            }
        }
        let rounds = (4000 * (STRETCH.len() - 1)) as f64;
        let share = checks as f64 / rounds;
        assert!((0.009..0.012).contains(&share), "{share}");
        // Of the checks of a stretch all but the first.
        let after = after_a_check as f64 / checks as f64;
        assert!((0.3..0.45).contains(&after), "{after}");
        let beside = beside_a_check as f64 / checks as f64;
        assert!((0.005..0.02).contains(&beside), "{beside}");
    }

    #[test]
    fn poison_is_as_often_finite_as_not() {
        let plan = Plan::new(42);
        let nan = (0..1000).filter(|turn| plan.poison(*turn) == Poison::NotANumber);
        assert!((420..580).contains(&nan.count()));
        let (first, second) = (plan.for_another("a"), plan.for_another("b"));
        assert_ne!(first.entropy, second.entropy);
        assert_ne!(first.order, second.order);
        assert_eq!(first.seed, second.seed);
    }

    #[test]
    fn repeat_time_becomes_a_count_of_whole_periods() {
        let mut plan = Plan::new(0);
        assert_eq!(plan.rule_for(2, 100.0).rounds_fixed, None);
        plan.repeat = Some(Duration::from_millis(10));
        assert_eq!(plan.rule_for(2, 100.0).rounds_fixed, Some(100));
        assert_eq!(plan.rule_for(7, 100.0).rounds_fixed, Some(112));
        assert_eq!(
            plan.rule_for(2, 1e6).rounds_fixed,
            Some(plan.rule.rounds_min)
        );
    }
}
