//! The rounds of one workload.

use std::time::Instant;

use device::{Queue, Sample};
use gate::{Failure, Gate};
use numeric::{bits, index_below};
use serde::{Deserialize, Serialize};
use stats::{reference_clock_mhz, Decision, Rounds, Schedule, StopReason, Stopping};

use crate::{Course, Lane, Plan};

/// What a lane is about to do; reported beforehand, so that a crash can be attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    WarmUp,
    Sample,
    Check,
}

/// One sample of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedSample {
    pub elapsed_us: f64,
    pub clock_mhz: Option<f64>,
    /// Ran below the clock filter: kept here but left out of all statistics.
    pub dropped: bool,
    /// Its launches were not queued before it started, so it includes host latency.
    pub unqueued: bool,
}

/// All samples of one lane, one per round: equal indices of two lanes are pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub samples: Vec<TimedSample>,
    pub reference_clock_mhz: Option<f64>,
    /// Rounds whose outputs passed the gate.
    pub checked_rounds: usize,
    pub stop: StopReason,
}

impl Timing {
    /// Samples that count, in us.
    pub fn kept_us(&self) -> Vec<f64> {
        self.samples
            .iter()
            .filter(|sample| !sample.dropped)
            .map(|s| s.elapsed_us)
            .collect()
    }
}

/// A lane that failed during the race, which is then void and can be rerun without that lane.
#[derive(Debug, thiserror::Error)]
#[error("{failure}")]
pub struct LaneFailure {
    /// Index of the lane; none if the damage was found too late to tell who caused it.
    pub lane: Option<usize>,
    pub failure: Failure,
}

/// Random stream for the choice of sets in checked rounds.
const SET_STREAM: u32 = u32::MAX - 3;

/// Races the lanes; returns one [`Timing`] each. The others are compared with lane `baseline`.
/// Without a gate nothing is checked.
pub fn race(
    course: &Course,
    lanes: &mut [Lane],
    baseline: usize,
    plan: &Plan,
    gate: Option<&Gate>,
    announce: &mut dyn FnMut(usize, Step),
) -> Result<Vec<Timing>, LaneFailure> {
    let slowest_us = warm_up(course, lanes, plan, announce)?;
    let mut stopping = Stopping::new(plan.rule_for(slowest_us));
    let schedule = Schedule::new(lanes.len(), plan.seed);
    let mut rounds = Rounds::new(lanes.len());
    let mut samples: Vec<Vec<TimedSample>> = vec![Vec::new(); lanes.len()];
    let (mut turn, mut checked_rounds) = (0, 0);
    let start = Instant::now();
    let stop = loop {
        let round = rounds.len();
        let gate = gate.filter(|_| plan.is_checked(round));
        let mut times = vec![None; lanes.len()];
        for lane in schedule.order(round) {
            announce(lane, Step::Sample);
            let sample = match gate {
                Some(gate) => {
                    let set = checked_set(course, plan, turn);
                    course.checked_sample(&mut lanes[lane], set, plan, gate)
                }
                None => course.sample(&mut lanes[lane], turn % course.sets().len(), plan),
            }
            .map_err(|failure| LaneFailure {
                lane: Some(lane),
                failure,
            })?;
            turn += 1;
            times[lane] = Some(sample.elapsed_us);
            samples[lane].push(TimedSample::from(sample));
        }
        rounds.push(&times);
        checked_rounds += usize::from(gate.is_some());
        if let Decision::Stop(reason) = stopping.after_round(&rounds, baseline, start.elapsed()) {
            break reason;
        }
    };
    if let Some(gate) = gate {
        check_after(course, lanes, plan, gate, announce)?;
    }
    let reference = drop_slow_clocks(&mut samples, plan);
    Ok(samples
        .into_iter()
        .map(|samples| Timing {
            samples,
            reference_clock_mhz: reference,
            checked_rounds,
            stop,
        })
        .collect())
}

impl From<Sample> for TimedSample {
    fn from(sample: Sample) -> Self {
        Self {
            elapsed_us: sample.elapsed_us,
            clock_mhz: sample.clock_mhz,
            dropped: false,
            unqueued: sample.queue == Queue::TimedOut,
        }
    }
}

/// Runs every lane for the warm-up time, at least twice and on every set: first calls do lazy work
/// that must not end up in a sample. Returns the slowest lane's time, using the best sample of each.
fn warm_up(
    course: &Course,
    lanes: &mut [Lane],
    plan: &Plan,
    announce: &mut dyn FnMut(usize, Step),
) -> Result<f64, LaneFailure> {
    let sets = course.sets().len();
    let mut slowest_us = 0.0f64;
    for (index, lane) in lanes.iter_mut().enumerate() {
        announce(index, Step::WarmUp);
        let (mut runs, mut best_us) = (0, f64::INFINITY);
        let start = Instant::now();
        while runs < sets.max(2) || start.elapsed() < plan.warmup {
            let sample = course
                .sample(lane, runs % sets, plan)
                .map_err(|failure| LaneFailure {
                    lane: Some(index),
                    failure,
                })?;
            best_us = best_us.min(sample.elapsed_us);
            runs += 1;
        }
        slowest_us = slowest_us.max(best_us);
    }
    Ok(slowest_us)
}

/// Checks every lane once more, and the sets that no checked round covered.
fn check_after(
    course: &Course,
    lanes: &mut [Lane],
    plan: &Plan,
    gate: &Gate,
    announce: &mut dyn FnMut(usize, Step),
) -> Result<(), LaneFailure> {
    course.check_untouched().map_err(|failure| LaneFailure {
        lane: None,
        failure,
    })?;
    for (index, lane) in lanes.iter_mut().enumerate() {
        announce(index, Step::Check);
        course
            .checked_sample(lane, 0, plan, gate)
            .map_err(|failure| LaneFailure {
                lane: Some(index),
                failure,
            })?;
    }
    Ok(())
}

/// One of the first two sets, whose answers the gate knows.
fn checked_set(course: &Course, plan: &Plan, turn: usize) -> usize {
    let known = course.sets().len().min(2) as u32;
    index_below(bits(plan.seed, SET_STREAM, turn as u64), known) as usize
}

/// Marks samples below the clock filter; returns the reference clock of the race.
fn drop_slow_clocks(samples: &mut [Vec<TimedSample>], plan: &Plan) -> Option<f64> {
    let reference = reference_clock_mhz(samples.iter().flatten().filter_map(|s| s.clock_mhz));
    for sample in samples.iter_mut().flatten() {
        sample.dropped = !plan.clock_filter.keeps(sample.clock_mhz, reference);
    }
    reference
}
