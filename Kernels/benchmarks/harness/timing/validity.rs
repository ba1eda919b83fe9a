//! Whether a time can be trusted.

use std::time::Duration;

use device::{Queue, Sample};
use gate::Failure;
use serde::{Deserialize, Serialize};

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

/// Judges one lane's samples, and what the tracer saw of it.
pub fn validate(
    course: &Course,
    lane: &mut Lane,
    timing: &Timing,
    plan: &Plan,
    limits: Limits,
) -> Result<Validity, Failure> {
    let mut reason = implausible(timing, limits);
    // A block repeats its inputs, so its time tells nothing about memory.
    let suspicious =
        plan.steady.is_some() || is_slower_when_fresh(timing, course.moved_inputs_us());
    if reason.is_none() && suspicious {
        reason = remembers(course, lane, &plan.single())?;
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

/// The longest honest time on fresh inputs, given that on others and what new inputs may cost.
fn fresh_most_us(repeated_us: f64, moved_inputs_us: f64) -> f64 {
    (FRESH_SLOWER * repeated_us).max(repeated_us + moved_inputs_us)
}

/// Whether fresh inputs took visibly longer than those seen before, as they do if answers are kept.
fn is_slower_when_fresh(timing: &Timing, moved_inputs_us: f64) -> bool {
    let of = |fresh: bool| -> Vec<f64> {
        let samples = timing.samples.iter().filter(|sample| !sample.dropped);
        let samples = samples.filter(|sample| sample.fresh == fresh);
        samples.map(|sample| sample.elapsed_us).collect()
    };
    let (fresh, repeated) = (of(true), of(false));
    let known = !fresh.is_empty() && !repeated.is_empty();
    known && median(fresh) > fresh_most_us(median(repeated), moved_inputs_us)
}

/// Whether the lane remembers answers. A busy machine may hide that in some attempts, and make it up in one.
fn remembers(course: &Course, lane: &mut Lane, plan: &Plan) -> Result<Option<String>, Failure> {
    const ATTEMPTS: u64 = 4;
    let (mut found, mut missed) = (0, 0);
    for attempt in 0..ATTEMPTS {
        match is_faster_on_seen(course, lane, plan, attempt)? {
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

/// Times fresh and repeated inputs in turn, each after a run on other or the same inputs. If nearly every fresh sample
/// is slower than nearly every repeated one, it says so. Once that can no longer be, it stops.
fn is_faster_on_seen(
    course: &Course,
    lane: &mut Lane,
    plan: &Plan,
    attempt: u64,
) -> Result<Option<String>, Failure> {
    const PAIRS: usize = 10;
    /// Of all comparisons; chance leaves so few once in ten thousand times.
    const NOT_SLOWER_MOST: usize = PAIRS * PAIRS / 20;
    let seen = course.seed(0);
    let (mut fresh, mut repeated) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS as u64 {
        let not_slower = fresh.len() * repeated.len() - slower(&fresh, &repeated);
        if not_slower > NOT_SLOWER_MOST {
            return Ok(None);
        }
        let place = 2 * (attempt * PAIRS as u64 + pair);
        let [primed, unseen] = [0, 1].map(|index| plan.fresh_seed(u64::MAX - place - index));
        // Each kind goes first equally often.
        let mut seeds = [(primed, unseen), (seen, seen)];
        seeds.rotate_left(pair as usize % 2);
        for (before, seed) in seeds {
            course.prime(lane, 0, before, seed)?;
            let turn = Turn {
                set: 0,
                poison: plan.poison(pair as usize),
                seed: Some(seed),
                gate: None,
            };
            let elapsed_us = course.sample(lane, &turn, plan, &mut |_| {})?.elapsed_us;
            let kind = match seed == seen {
                true => &mut repeated,
                false => &mut fresh,
            };
            kind.push(elapsed_us);
        }
    }
    let differs = slower(&fresh, &repeated) >= PAIRS * PAIRS - NOT_SLOWER_MOST;
    let (fresh_us, repeated_us) = (median(fresh), median(repeated));
    let most_us = fresh_most_us(repeated_us, course.moved_inputs_us());
    Ok((differs && fresh_us > most_us).then(|| {
        format!(
            "takes {fresh_us:.2} us for inputs it has not seen and {repeated_us:.2} us for \
                 others: it remembers answers"
        )
    }))
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
    }
}
