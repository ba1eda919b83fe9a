//! Whether a time can be trusted.

use device::{Cache, Device, SampleMode};
use gate::Failure;
use serde::{Deserialize, Serialize};
use stats::quantile;

use crate::course::Turn;
use crate::{CacheState, Course, Lane, Plan, Timing};

/// What times are checked against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Minimum possible time according to the measured roofs.
    pub floor_us: Option<f64>,
}

/// The same work timed by events and by the activity tracer: medians of a few runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerCheck {
    pub event_us: f64,
    pub activity_us: f64,
    /// Kernels, copies and fills that the tracer saw.
    pub activities: usize,
}

impl TimerCheck {
    /// Differences up to this are due to the timers: tracing adds to the edges of every activity, and
    /// a launch with clusters or a lot of shared memory costs up to 1.1 us more between events than
    /// the plain kernel used to measure their overhead.
    const SLACK_US_PER_ACTIVITY: f64 = 1.5;
    const SLACK_SHARE: f64 = 0.02;

    pub fn agrees(&self) -> bool {
        let edges = Self::SLACK_US_PER_ACTIVITY * self.activities as f64;
        let slack = edges.max(Self::SLACK_SHARE * self.activity_us);
        (self.event_us - self.activity_us).abs() <= slack
    }
}

/// The outcome for one lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// Why the time must not be used, if so.
    pub reason: Option<String>,
    /// None if there is no tracer.
    pub timer_check: Option<TimerCheck>,
}

/// Judges one lane's samples, and cross-checks its timer if the device can.
pub fn validate(
    course: &Course,
    lane: &mut Lane,
    timing: &Timing,
    plan: &Plan,
    limits: Limits,
) -> Result<Validity, Failure> {
    if let Some(reason) = implausible(timing, limits) {
        return Ok(Validity {
            reason: Some(reason),
            timer_check: None,
        });
    }
    if is_slower_when_fresh(timing) {
        // A busy machine hides a difference rather than making one up.
        for attempt in 0..ATTEMPTS {
            if let Some(reason) = remembers(course, lane, plan, attempt)? {
                return Ok(Validity {
                    reason: Some(reason),
                    timer_check: None,
                });
            }
        }
    }
    if course.device().cross_check_obstacle().is_some() {
        return Ok(Validity::default());
    }
    let check = cross_check(course.device(), lane, plan)?;
    let reason = (!check.agrees()).then(|| {
        format!(
            "timers disagree: events say {:.2} us, the activity tracer {:.2} us",
            check.event_us, check.activity_us
        )
    });
    Ok(Validity {
        reason,
        timer_check: Some(check),
    })
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
    let median = median(kept);
    match limits.floor_us {
        Some(floor) if median < floor => Some(format!(
            "{median:.3} us is below the roofline floor of {floor:.3} us"
        )),
        _ => None,
    }
}

/// How much longer samples on fresh inputs may take than the others before that is looked into.
const FRESH_SLOWER: f64 = 1.05;
const ATTEMPTS: u64 = 3;

/// Whether fresh inputs took visibly longer than those seen before, as they do if answers are kept.
fn is_slower_when_fresh(timing: &Timing) -> bool {
    let of = |fresh: bool| -> Vec<f64> {
        let samples = timing.samples.iter().filter(|sample| !sample.dropped);
        let samples = samples.filter(|sample| sample.fresh == fresh);
        samples.map(|sample| sample.elapsed_us).collect()
    };
    let (fresh, repeated) = (of(true), of(false));
    let known = !fresh.is_empty() && !repeated.is_empty();
    known && median(fresh) > FRESH_SLOWER * median(repeated)
}

/// Times fresh and repeated inputs in turn, each after a run on other or the same inputs. If nearly every fresh sample
/// is slower than nearly every repeated one, the lane remembers answers.
fn remembers(
    course: &Course,
    lane: &mut Lane,
    plan: &Plan,
    attempt: u64,
) -> Result<Option<String>, Failure> {
    const PAIRS: usize = 10;
    /// Chance reaches this share once in ten thousand times.
    const SHARE: f64 = 0.95;
    let seen = course.seed(0);
    let (mut fresh, mut repeated) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS as u64 {
        let place = 2 * (attempt * PAIRS as u64 + pair);
        let [primed, unseen] = [0, 1].map(|index| plan.fresh_seed(u64::MAX - place - index));
        // Each kind goes first equally often.
        let mut seeds = [(primed, unseen), (seen, seen)];
        seeds.rotate_left(pair as usize % 2);
        for (before, seed) in seeds {
            course.prime(lane, 0, before)?;
            let turn = Turn {
                set: 0,
                poison: plan.poison(pair as usize),
                seed: Some(seed),
                gate: None,
            };
            let elapsed_us = course.sample(lane, &turn, plan)?.elapsed_us;
            let kind = match seed == seen {
                true => &mut repeated,
                false => &mut fresh,
            };
            kind.push(elapsed_us);
        }
    }
    let slower = |fresh: &f64| repeated.iter().filter(|us| fresh > us).count();
    let slower: usize = fresh.iter().map(slower).sum();
    let (fresh_us, repeated_us) = (median(fresh), median(repeated));
    let differs = slower as f64 >= SHARE * (PAIRS * PAIRS) as f64;
    Ok((differs && fresh_us > FRESH_SLOWER * repeated_us).then(|| {
        format!(
            "takes {fresh_us:.2} us for inputs it has not seen and {repeated_us:.2} us for \
                 others: it remembers answers"
        )
    }))
}

fn cross_check(device: &dyn Device, lane: &mut Lane, plan: &Plan) -> Result<TimerCheck, Failure> {
    const RUNS: usize = 5;
    let cache = match plan.cache {
        CacheState::Cold => Cache::Cold,
        CacheState::Hot => Cache::Hot,
    };
    let (mut events, mut activities) = (Vec::new(), Vec::new());
    let mut count = 0;
    for _ in 0..RUNS {
        let check = device.cross_check(SampleMode::new(cache), &mut |stream| {
            lane.enqueue(0, stream)
        })?;
        events.push(check.event_us);
        activities.push(check.activity_us);
        count = check.activities.len();
    }
    Ok(TimerCheck {
        event_us: median(events),
        activity_us: median(activities),
        activities: count,
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5)
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
        };
        Timing {
            samples: times_us.iter().map(sample).collect(),
            reference_clock_mhz: None,
            checked_rounds: 1,
            stop: StopReason::Precise,
        }
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
        assert!(!is_slower_when_fresh(&times));
        times.samples[3].fresh = true;
        assert!(is_slower_when_fresh(&times));
        times.samples[3].elapsed_us = 10.4;
        assert!(!is_slower_when_fresh(&times));
        times.samples[3].elapsed_us = 5.0;
        assert!(!is_slower_when_fresh(&times));
    }

    #[test]
    fn timers_agree_within_their_edges_or_two_percent() {
        let check = |event_us, activity_us| TimerCheck {
            event_us,
            activity_us,
            activities: 1,
        };
        let two_kernels = TimerCheck {
            activities: 2,
            ..check(7.9, 5.0)
        };
        assert!(two_kernels.agrees());
        assert!(check(6.4, 5.0).agrees());
        assert!(!check(6.6, 5.0).agrees());
        assert!(!check(3.4, 5.0).agrees());
        assert!(check(1019.0, 1000.0).agrees());
        assert!(!check(1021.0, 1000.0).agrees());
    }
}
