//! The rounds of one workload.

use std::time::Instant;

use device::{Queue, Sample};
use gate::{Failure, Gate};
use serde::{Deserialize, Serialize};
use stats::{reference_clock_mhz, Decision, Rounds, Schedule, StopReason, Stopping};

use crate::course::Turn;
use crate::plan::Round;
use crate::trace::{median, trace, Traced};
use crate::{Course, Lane, Plan, Step};

/// One sample of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedSample {
    pub elapsed_us: f64,
    pub clock_mhz: Option<f64>,
    /// Ran below the clock filter: kept here but left out of all statistics.
    pub dropped: bool,
    /// On inputs that nobody had seen before.
    pub fresh: bool,
    /// Its launches were not queued before it started, so it includes host latency.
    pub unqueued: bool,
    /// Host time of the call that queued it.
    pub enqueue_us: Option<f64>,
}

/// All samples of one lane, one per round: equal indices of two lanes are pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub samples: Vec<TimedSample>,
    pub reference_clock_mhz: Option<f64>,
    /// Rounds whose outputs passed the gate.
    pub checked_rounds: usize,
    pub stop: StopReason,
    /// None if the device cannot trace.
    pub traced: Option<Traced>,
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

    /// Of the samples that count.
    pub fn median_us(&self) -> f64 {
        median(self.kept_us())
    }

    /// Of the samples that count.
    pub fn median_clock_mhz(&self) -> Option<f64> {
        self.known_median(|sample| sample.clock_mhz)
    }

    /// Of the samples that count.
    pub fn median_enqueue_us(&self) -> Option<f64> {
        self.known_median(|sample| sample.enqueue_us)
    }

    fn known_median(&self, of: fn(&TimedSample) -> Option<f64>) -> Option<f64> {
        let kept = self.samples.iter().filter(|sample| !sample.dropped);
        let values: Vec<f64> = kept.filter_map(of).collect();
        (!values.is_empty()).then(|| median(values))
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

impl From<Failure> for LaneFailure {
    fn from(failure: Failure) -> Self {
        Self {
            lane: None,
            failure,
        }
    }
}

/// Races the lanes; returns one [`Timing`] each. Rounds end when the ratios of `pairs` are known.
/// Without a gate nothing is checked.
pub fn race(
    course: &Course,
    lanes: &mut [Lane],
    pairs: &[(usize, usize)],
    plan: &Plan,
    gate: Option<&Gate>,
    announce: &mut dyn FnMut(usize, Step),
) -> Result<Vec<Timing>, LaneFailure> {
    let single = plan.single();
    // Whoever is not here any more may have damaged sets that the gate has not looked at.
    course.reset().map_err(Failure::from)?;
    let slowest_us = warm_up(course, lanes, &single, announce)?;
    let mut stopping = Stopping::new(plan.rule_for(lanes.len(), slowest_us));
    let schedule = Schedule::new(lanes.len(), plan.order);
    let mut rounds = Rounds::new(lanes.len());
    let mut samples: Vec<Vec<TimedSample>> = vec![Vec::new(); lanes.len()];
    let sets = course.sets().len();
    let mut checked = vec![vec![false; sets]; lanes.len()];
    let mut checked_rounds = vec![0; lanes.len()];
    let mut turns = 0;
    let start = Instant::now();
    let stop = loop {
        // So that the judge of these times knows the machine as it was now.
        course.device().look_at_load();
        let mut times = vec![None; lanes.len()];
        for lane in schedule.order(rounds.len()) {
            let kind = match gate {
                Some(_) => plan.turn(lane, rounds.len()),
                None => Round::Plain,
            };
            let turn = Turn {
                set: turns % sets,
                poison: plan.poison(turns),
                seed: match kind {
                    Round::Fresh(seed) => Some(seed),
                    _ => None,
                },
                gate: gate.filter(|_| kind != Round::Plain),
            };
            turns += 1;
            let sample = sample(course, lanes, lane, &turn, plan, announce)?;
            checked[lane][turn.set] |= turn.gate.is_some();
            checked_rounds[lane] += usize::from(turn.gate.is_some());
            times[lane] = Some(sample.elapsed_us);
            samples[lane].push(TimedSample {
                fresh: turn.seed.is_some(),
                ..TimedSample::from(sample)
            });
        }
        rounds.push(&times);
        if let Decision::Stop(reason) = stopping.after_round(&rounds, pairs, start.elapsed()) {
            break reason;
        }
    };
    if let Some(gate) = gate {
        check_after(course, lanes, &single, gate, &checked, announce)?;
    }
    let reference = drop_slow_clocks(&mut samples, plan);
    let timing = |(samples, checked_rounds)| Timing {
        samples,
        reference_clock_mhz: reference,
        checked_rounds,
        stop,
        traced: None,
    };
    let each = samples.into_iter().zip(checked_rounds);
    let mut timings: Vec<Timing> = each.map(timing).collect();
    trace(course, lanes, &mut timings, &single, announce)?;
    Ok(timings)
}

impl From<Sample> for TimedSample {
    fn from(sample: Sample) -> Self {
        Self {
            elapsed_us: sample.elapsed_us,
            clock_mhz: sample.clock_mhz,
            dropped: false,
            fresh: false,
            unqueued: sample.queue == Queue::TimedOut,
            enqueue_us: sample.enqueue_us,
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
    for index in 0..lanes.len() {
        announce(index, Step::WarmUp);
        let (mut runs, mut best_us) = (0, f64::INFINITY);
        let start = Instant::now();
        while runs < sets.max(2) || start.elapsed() < plan.warmup {
            let turn = Turn {
                set: runs % sets,
                poison: plan.poison(runs),
                seed: None,
                gate: None,
            };
            let sample = sample(course, lanes, index, &turn, plan, &mut |_, _| {})?;
            best_us = best_us.min(sample.elapsed_us);
            runs += 1;
        }
        slowest_us = slowest_us.max(best_us);
    }
    Ok(slowest_us)
}

/// Takes a sample of one lane. What is found damaged after it may have been damaged by another before: whoever damages
/// nothing when it runs once more is not blamed.
fn sample(
    course: &Course,
    lanes: &mut [Lane],
    lane: usize,
    turn: &Turn,
    plan: &Plan,
    announce: &mut dyn FnMut(usize, Step),
) -> Result<Sample, LaneFailure> {
    let sampled = course.sample(&mut lanes[lane], turn, plan, &mut |step| {
        announce(lane, step)
    });
    sampled.map_err(|failure| {
        // What is nobody else's was damaged by nobody else.
        let shared = lanes[lane].own_course().is_none();
        let innocent = shared && failure.is_damage() && !damages(course, &mut lanes[lane], turn);
        LaneFailure {
            lane: (!innocent).then_some(lane),
            failure,
        }
    })
}

/// Whether a lane writes where it must not, on the inputs of a turn and a set that is whole before.
fn damages(course: &Course, lane: &mut Lane, turn: &Turn) -> bool {
    let mut run = || -> Result<(), Failure> {
        let (at, device) = (&course.sets()[turn.set], course.device());
        at.load(turn.seed.unwrap_or(course.seed()))?;
        lane.enqueue(turn.set, device.stream())?;
        device.synchronize()?;
        at.check_untouched()
    };
    run().is_err()
}

/// Checks every lane once more, on its first set and on those that no checked round covered.
fn check_after(
    course: &Course,
    lanes: &mut [Lane],
    plan: &Plan,
    gate: &Gate,
    checked: &[Vec<bool>],
    announce: &mut dyn FnMut(usize, Step),
) -> Result<(), LaneFailure> {
    course.check_untouched()?;
    for (lane, own) in lanes.iter().map(Lane::own_course).enumerate() {
        let untouched = own.map_or(Ok(()), |own| own.check_untouched());
        untouched.map_err(|failure| LaneFailure {
            lane: Some(lane),
            failure,
        })?;
    }
    let mut turns = 0;
    for (lane, covered) in checked.iter().enumerate() {
        for (set, covered) in covered.iter().enumerate() {
            if set > 0 && *covered {
                continue;
            }
            // Counted down, so that no turn of the race had the same poison.
            turns += 1;
            let turn = Turn {
                set,
                poison: plan.poison(usize::MAX - turns),
                seed: None,
                gate: Some(gate),
            };
            sample(course, lanes, lane, &turn, plan, &mut |lane, _| {
                announce(lane, Step::Check);
            })?;
        }
    }
    Ok(())
}

/// Marks samples below the clock filter; returns the reference clock of the race.
fn drop_slow_clocks(samples: &mut [Vec<TimedSample>], plan: &Plan) -> Option<f64> {
    let reference = reference_clock_mhz(samples.iter().flatten().filter_map(|s| s.clock_mhz));
    for sample in samples.iter_mut().flatten() {
        sample.dropped = !plan.clock_filter.keeps(sample.clock_mhz, reference);
    }
    reference
}
