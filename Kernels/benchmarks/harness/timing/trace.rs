//! The race once more under the activity tracer: what each contender runs, where, and for how long.

use device::Place;
use gate::Failure;
use serde::{Deserialize, Serialize};
use stats::{quantile, Schedule, SMALL_US};

use crate::course::Turn;
use crate::{CacheState, Course, Lane, LaneFailure, Plan, Step, Timer, Timing};

/// One sample by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedSample {
    /// By events, as in the race.
    pub event_us: f64,
    /// From the start of the first activity to the end of the last.
    pub activity_us: f64,
    pub clock_mhz: Option<f64>,
}

/// What the tracer says about a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// One per traced round: equal indices of two lanes are pairs.
    pub samples: Vec<TracedSample>,
    /// Kernels, copies and fills of one execution.
    pub activities: usize,
    /// Work outside the timed region, if there was any.
    pub outside: Option<String>,
    /// A time of the race is too small for events alone, so there are samples for a ratio.
    pub small: bool,
}

impl Traced {
    pub fn median_event_us(&self) -> f64 {
        self.median(|sample| sample.event_us)
    }

    pub fn median_activity_us(&self) -> f64 {
        self.median(|sample| sample.activity_us)
    }

    /// By the tracer, where they are enough for a ratio.
    pub fn kernel_samples_us(&self) -> Vec<f64> {
        let samples = self.samples.iter().filter(|_| self.small);
        samples.map(|sample| sample.activity_us).collect()
    }

    pub fn median_clock_mhz(&self) -> Option<f64> {
        let clocks: Option<Vec<f64>> = self.samples.iter().map(|sample| sample.clock_mhz).collect();
        clocks.filter(|clocks| !clocks.is_empty()).map(median)
    }

    fn median(&self, of: impl Fn(&TracedSample) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Enough to compare timers.
const ROUNDS: usize = 5;
/// Enough for a ratio, where events alone do not decide.
const ROUNDS_SMALL: usize = 25;

/// Traces the lanes in rounds, if the device can. Many rounds if any of the times is small.
pub(crate) fn trace(
    course: &Course,
    lanes: &mut [Lane],
    timings: &mut [Timing],
    plan: &Plan,
    announce: &mut dyn FnMut(usize, Step),
) -> Result<(), LaneFailure> {
    if course.device().trace_obstacle().is_some() {
        return Ok(());
    }
    let mut times = timings.iter().map(Timing::median_us);
    let small = times.any(|us| us < SMALL_US);
    if !small && !plan.trace {
        return Ok(());
    }
    let rounds = match small {
        true => ROUNDS_SMALL,
        false => ROUNDS,
    };
    let plan = Plan {
        timer: Timer::Op,
        ..plan.clone()
    };
    let schedule = Schedule::new(lanes.len(), !plan.order);
    let order: Vec<usize> = (0..rounds)
        .flat_map(|round| schedule.order(round))
        .collect();
    let sets = course.sets().len();
    let mut take = || {
        let samples = order.iter().enumerate().map(|(count, &lane)| {
            announce(lane, Step::Trace);
            let turn = Turn {
                set: count % sets,
                poison: plan.poison(usize::MAX / 2 - count),
                seed: None,
                gate: None,
            };
            let sampled = course.sample(&mut lanes[lane], &turn, &plan, &mut |_| {});
            sampled.map_err(|failure| LaneFailure {
                lane: Some(lane),
                failure,
            })
        });
        samples.collect::<Result<Vec<_>, LaneFailure>>()
    };
    let (samples, traces) = course.traced(&mut take)?;
    let nothing = Traced {
        small,
        ..Traced::default()
    };
    let mut traced = vec![nothing; timings.len()];
    for ((lane, sample), trace) in order.into_iter().zip(samples).zip(traces) {
        let activity_us = trace.activity_us().ok_or(LaneFailure {
            lane: Some(lane),
            failure: Failure::Untraced,
        })?;
        let traced = &mut traced[lane];
        traced.activities = trace.activities.len();
        traced.samples.push(TracedSample {
            event_us: sample.elapsed_us,
            activity_us,
            clock_mhz: sample.clock_mhz,
        });
        // With a hot cache the harness itself asks for an untimed run before each sample.
        let mut strays = trace
            .outside
            .into_iter()
            .filter(|(place, _)| *place == Place::OtherStream || plan.cache == CacheState::Cold);
        if let Some((place, activity)) = strays.next() {
            let place = match place {
                Place::OtherStream => "on another stream",
                Place::OtherTime => "before or after the timed region",
            };
            let us = (activity.end_ns - activity.start_ns) as f64 / 1e3;
            let reason = format!("'{}' ran {place} for {us:.2} us", activity.name);
            traced.outside.get_or_insert(reason);
        }
    }
    for (timing, traced) in timings.iter_mut().zip(traced) {
        timing.traced = Some(traced);
    }
    Ok(())
}
