//! Whether a time can be trusted.

use std::time::Duration;

use device::{DeviceKind, Queue, Sample};
use gate::{Failure, Gate};
use serde::{Deserialize, Serialize};
use stats::quantile;

use crate::course::Turn;
use crate::region::{outside_region, races_differently};
use crate::steady;
use crate::trace::median;
use crate::{Course, Lane, Plan, Timing};

/// What times are checked against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Minimum possible time according to the measured roofs.
    pub floor_us: Option<f64>,
}

/// The outcome for one lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// Why the time must not be used, if so.
    pub reason: Option<String>,
}

/// Judges one lane's samples, and what the tracer saw of it. Without a gate nothing is checked.
pub fn validate(
    course: &Course,
    lane: &mut Lane,
    timing: &Timing,
    plan: &Plan,
    limits: Limits,
    gate: Option<&Gate>,
) -> Result<Validity, Failure> {
    let mut reason = implausible(timing, limits);
    // A block repeats its inputs, so its time tells nothing about memory.
    let moved_inputs_us = course.moved_inputs_us();
    let suspicious = plan.steady.is_some() || is_slower_when_fresh(timing, moved_inputs_us);
    if reason.is_none() && suspicious {
        let sleeps = lane.own_course().is_some() || course.device().info().kind == DeviceKind::Cpu;
        let late_us = if sleeps { WOKEN_US } else { moved_inputs_us };
        let trial = Trial {
            course,
            plan: plan.single(),
            gate,
            believable_us: believable_us(timing, plan, late_us),
        };
        reason = trial.remembers(lane)?;
    }
    reason = reason.or_else(|| outside_region(timing));
    // In steady state executions overlap at their ends and find another cache than traced ones.
    if reason.is_none() && plan.steady.is_none() {
        reason = races_differently(timing);
        if reason.is_some() && repeats_its_time(course, lane, timing.median_us())? {
            reason = None;
        }
    }
    Ok(Validity { reason })
}

/// Long beside the time to queue it.
const BLOCK: Duration = Duration::from_millis(20);

/// Whether executions that follow each other take as long as one of the race. The tracer slows some
/// kernels down, and then they do. They do not if the race hid work: a block has no more room for that than
/// the time in which it is queued.
fn repeats_its_time(course: &Course, lane: &mut Lane, raced_us: f64) -> Result<bool, Failure> {
    // Otherwise the cache would make up for it.
    let comparable = !course.in_place() && course.is_cold_by_rotation();
    Ok(comparable && is_whole(&steady::block(course, lane, BLOCK)?, raced_us))
}

/// Whether the work of a block, with all that may be hidden, fits into the time of the race.
fn is_whole(block: &Sample, raced_us: f64) -> bool {
    const SLACK: f64 = 1.1;
    let hidden_us = block.enqueue_us.unwrap_or(f64::INFINITY);
    block.queue != Queue::TimedOut && block.elapsed_us + hidden_us <= SLACK * raced_us
}

/// Why the samples themselves cannot be true.
fn implausible(timing: &Timing, limits: Limits) -> Option<String> {
    let kept = timing.kept_us();
    let total = timing.samples.len();
    if let Some(bad) = kept.iter().find(|us| !(us.is_finite() && **us > 0.0)) {
        return Some(format!("a sample took {bad} us: the timer does not work"));
    }
    if 2 * kept.len() < total {
        let dropped = total - kept.len();
        return Some(format!(
            "{dropped} of {total} samples ran at a throttled clock"
        ));
    }
    let unqueued = timing
        .samples
        .iter()
        .filter(|sample| sample.unqueued)
        .count();
    if unqueued > 0 {
        return Some(format!(
            "{unqueued} of {total} samples were not queued in time: it synchronizes or allocates \
             inside the timed region"
        ));
    }
    let median = timing.median_us();
    match limits.floor_us {
        Some(floor) if median < floor => Some(format!(
            "{median:.3} us is below the roofline floor of {floor:.3} us"
        )),
        _ => None,
    }
}

/// How much longer samples on fresh inputs may take than the others before that is looked into.
const FRESH_SLOWER: f64 = 1.05;
/// How much longer the fastest sample on fresh inputs may take than the race says: the machine may have become slower.
const JUDGED_SLOWER: f64 = 1.5;
/// The same if executions of the race followed each other.
const JUDGED_SLOWER_THAN_BLOCKS: f64 = 3.0;

/// What it may cost a process of its own, or the threads of a kernel on a CPU, to be woken for fresh inputs: between
/// two calls they slept, and on a busy machine others had their core and their cache meanwhile.
const WOKEN_US: f64 = 50.0;

/// The longest honest time on fresh inputs, given that on others and what new inputs may cost.
fn fresh_most_us(repeated_us: f64, moved_inputs_us: f64, slower: f64) -> f64 {
    (slower * repeated_us).max(repeated_us + moved_inputs_us)
}

/// What a race says of inputs that were fresh, and of others. Of fresh ones the fastest: there is nothing to repeat, so
/// whoever repeats answers is slow on all of them, as noise seldom is. Of others the lower quartile, because whoever
/// repeats answers need not do so in most rounds.
fn fresh_and_repeated_us(timing: &Timing) -> Option<(f64, f64)> {
    let of = |fresh: bool| -> Vec<f64> {
        let samples = timing.samples.iter().filter(|sample| !sample.dropped);
        let samples = samples.filter(|sample| sample.fresh == fresh);
        samples.map(|sample| sample.elapsed_us).collect()
    };
    let (fresh, repeated) = (of(true), of(false));
    let known = !fresh.is_empty() && !repeated.is_empty();
    known.then(|| (fastest(&fresh), lower_quartile(&repeated)))
}

/// Whether fresh inputs took visibly longer than those seen before, as they do if answers are kept.
fn is_slower_when_fresh(timing: &Timing, moved_inputs_us: f64) -> bool {
    fresh_and_repeated_us(timing).is_some_and(|(fresh, repeated)| {
        fresh > fresh_most_us(repeated, moved_inputs_us, FRESH_SLOWER)
    })
}

/// How long the fastest sample on fresh inputs may take if the race is to be believed: any time, unless fresh inputs
/// took longer there too. Blocks say nothing about fresh inputs.
fn believable_us(timing: &Timing, plan: &Plan, late_us: f64) -> f64 {
    let slower = match plan.steady {
        Some(_) => JUDGED_SLOWER_THAN_BLOCKS,
        None => JUDGED_SLOWER,
    };
    let most_us = fresh_and_repeated_us(timing).and_then(|(fresh, repeated)| {
        let most_us = fresh_most_us(repeated, late_us, slower);
        (plan.steady.is_some() || fresh > most_us).then_some(most_us)
    });
    most_us.unwrap_or(f64::INFINITY)
}

/// Who is judged, and by what.
struct Trial<'a> {
    course: &'a Course<'a>,
    plan: Plan,
    gate: Option<&'a Gate<'a>>,
    believable_us: f64,
}

impl Trial<'_> {
    /// Whether the lane remembers answers. A busy machine may hide that in some attempts, and make it up in one.
    fn remembers(&self, lane: &mut Lane) -> Result<Option<String>, Failure> {
        const ATTEMPTS: u64 = 4;
        let (mut found, mut missed) = (0, 0);
        for attempt in 0..ATTEMPTS {
            match self.is_faster_on_seen(lane, attempt)? {
                Some(reason) if found == 1 => return Ok(Some(reason)),
                Some(_) => found += 1,
                None => missed += 1,
            }
            // Two of the attempts must agree, and can no longer.
            if missed == ATTEMPTS - 1 {
                break;
            }
        }
        Ok(None)
    }

    /// Whether the fastest of some samples could be one of the race, on a machine that others have slowed down so much
    /// meanwhile.
    fn believes(&self, fresh_us: &[f64], slowed: &[f64]) -> bool {
        slowed.is_empty() || fastest(fresh_us) / lower_quartile(slowed) <= self.believable_us
    }

    /// Times fresh and repeated inputs in turn, each after a run on other or the same inputs. If nearly every fresh
    /// sample is slower than nearly every repeated one, or even the fastest is slower than the race can be, it says so.
    /// Once neither can be any more, it stops. Answers to fresh inputs are checked: who knows that it is judged could
    /// leave them out.
    fn is_faster_on_seen(&self, lane: &mut Lane, attempt: u64) -> Result<Option<String>, Failure> {
        const PAIRS: usize = 10;
        /// Of all comparisons; chance leaves so few once in ten thousand times.
        const NOT_SLOWER_MOST: usize = PAIRS * PAIRS / 20;
        let (course, plan) = (self.course, &self.plan);
        let device = course.device();
        let (mut fresh, mut repeated) = (Vec::new(), Vec::new());
        let mut slowed = Vec::new();
        for pair in 0..PAIRS {
            let not_slower = fresh.len() * repeated.len() - slower(&fresh, &repeated);
            if not_slower > NOT_SLOWER_MOST && self.believes(&fresh, &slowed) {
                return Ok(None);
            }
            let place = 2 * (attempt * PAIRS as u64 + pair as u64);
            let [primed, unseen] = [0, 1].map(|index| plan.fresh_seed(u64::MAX - place - index));
            let set = pair % course.sets().len();
            let seen = course.seed();
            // Each kind goes first equally often.
            let mut seeds = [(primed, unseen), (seen, seen)];
            seeds.rotate_left(pair % 2);
            for (before, seed) in seeds {
                course.prime(lane, set, before, seed)?;
                let turn = Turn {
                    set,
                    poison: plan.poison(pair),
                    seed: Some(seed),
                    gate: self.gate.filter(|_| seed != seen),
                };
                let elapsed_us = course.sample(lane, &turn, plan, &mut |_| {})?.elapsed_us;
                let kind = match seed == seen {
                    true => &mut repeated,
                    false => &mut fresh,
                };
                kind.push(elapsed_us);
                if seed != seen && self.believable_us.is_finite() {
                    let length = Duration::from_secs_f64(1e-6 * self.believable_us);
                    slowed.push(device.slowed_by_others(length.min(BLOCK)));
                }
            }
        }
        let differs = slower(&fresh, &repeated) >= PAIRS * PAIRS - NOT_SLOWER_MOST;
        let (fastest_us, believes) = (fastest(&fresh), self.believes(&fresh, &slowed));
        let (fresh_us, repeated_us) = (median(fresh), median(repeated));
        let most_us = fresh_most_us(repeated_us, course.moved_inputs_us(), FRESH_SLOWER);
        if differs && fresh_us > most_us {
            return Ok(Some(format!(
                "takes {fresh_us:.2} us for inputs it has not seen and {repeated_us:.2} us for \
                 others: it remembers answers"
            )));
        }
        Ok((!believes).then(|| {
            format!(
                "takes {fastest_us:.2} us or more when it is judged, where the race leaves \
                 {:.2} us at most: it remembers answers, or does not work in every round",
                self.believable_us
            )
        }))
    }
}

fn lower_quartile(values: &[f64]) -> f64 {
    let mut ascending = values.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    quantile(&ascending, 0.25)
}

fn fastest(times_us: &[f64]) -> f64 {
    times_us.iter().copied().fold(f64::INFINITY, f64::min)
}

/// How many pairs of one of each have the first slower.
fn slower(first: &[f64], second: &[f64]) -> usize {
    let than = |us: &f64| second.iter().filter(|other| us > other).count();
    first.iter().map(than).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimedSample;
    use stats::StopReason;

    fn timing(times_us: &[f64]) -> Timing {
        let sample = |elapsed_us: &f64| TimedSample {
            elapsed_us: *elapsed_us,
            clock_mhz: None,
            dropped: false,
            fresh: false,
            unqueued: false,
            enqueue_us: None,
        };
        Timing {
            samples: times_us.iter().map(sample).collect(),
            reference_clock_mhz: None,
            checked_rounds: 1,
            stop: StopReason::Precise,
            traced: None,
        }
    }

    #[test]
    fn a_block_has_room_for_little_hidden_work() {
        let block = |elapsed_us, enqueue_us| Sample {
            elapsed_us,
            clock_mhz: None,
            queue: Queue::Direct,
            enqueue_us,
        };
        assert!(is_whole(&block(101.0, Some(5.0)), 100.0));
        assert!(!is_whole(&block(120.0, Some(5.0)), 100.0));
        // What takes long to queue, or an unknown time, could hide the difference.
        assert!(!is_whole(&block(80.0, Some(40.0)), 100.0));
        assert!(!is_whole(&block(100.0, None), 100.0));
        let late = Sample {
            queue: Queue::TimedOut,
            ..block(100.0, Some(5.0))
        };
        assert!(!is_whole(&late, 100.0));
    }

    #[test]
    fn a_plausible_time_passes() {
        let limits = Limits {
            floor_us: Some(9.0),
        };
        assert_eq!(implausible(&timing(&[10.0, 11.0, 12.0]), limits), None);
    }

    #[test]
    fn times_that_cannot_be_true_are_named() {
        let limits = Limits {
            floor_us: Some(9.0),
        };
        assert!(implausible(&timing(&[8.0; 3]), limits)
            .unwrap()
            .contains("roofline floor"));
        assert!(implausible(&timing(&[10.0, 0.0]), limits)
            .unwrap()
            .contains("timer"));
        assert!(implausible(&timing(&[f64::NAN]), limits)
            .unwrap()
            .contains("timer"));
        let mut throttled = timing(&[10.0; 4]);
        throttled.samples[..3]
            .iter_mut()
            .for_each(|sample| sample.dropped = true);
        assert!(implausible(&throttled, limits).unwrap().contains("3 of 4"));
        let mut late = timing(&[10.0; 4]);
        late.samples[2].unqueued = true;
        assert!(implausible(&late, limits).unwrap().contains("synchronizes"));
    }

    #[test]
    fn only_fresh_inputs_that_take_longer_are_looked_into() {
        let mut times = timing(&[10.0, 10.0, 10.0, 11.0]);
        assert!(!is_slower_when_fresh(&times, 0.5));
        times.samples[3].fresh = true;
        assert!(is_slower_when_fresh(&times, 0.5));
        assert!(!is_slower_when_fresh(&times, 2.0));
        times.samples[3].elapsed_us = 10.4;
        assert!(!is_slower_when_fresh(&times, 0.1));
        times.samples[3].elapsed_us = 5.0;
        assert!(!is_slower_when_fresh(&times, 0.5));
        // One of several was a slow moment.
        let mut times = timing(&[10.0, 10.1, 10.0, 12.0, 14.0]);
        times.samples[1].fresh = true;
        times.samples[4].fresh = true;
        assert!(!is_slower_when_fresh(&times, 0.1));
    }

    #[test]
    fn a_race_of_some_fast_rounds_is_believed_only_if_fresh_inputs_were_no_slower() {
        let mut times = timing(&[210.0, 20.0, 220.0, 20.0, 230.0, 20.0, 240.0, 20.0, 200.0]);
        assert_eq!(believable_us(&times, &Plan::new(0), 5.0), f64::INFINITY);
        times.samples[8].fresh = true;
        assert!(is_slower_when_fresh(&times, 5.0));
        assert_eq!(believable_us(&times, &Plan::new(0), 5.0), 30.0);
        times.samples[8].elapsed_us = 29.0;
        assert_eq!(believable_us(&times, &Plan::new(0), 5.0), f64::INFINITY);
    }
}
