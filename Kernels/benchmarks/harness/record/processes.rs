//! A row from several processes: the rows of each, one added to the other.

use crate::{Clocks, Errors, Metrics, Row, Status, Time};
use stats::{StopReason, Summary};
use std::collections::BTreeMap;

/// Facts that differ from process to process without meaning anything.
const VOLATILE: [&str; 2] = [PLAN_US, PLANNED_AHEAD];
const PLAN_US: &str = "plan_us";
const PLANNED_AHEAD: &str = "planned_ahead";

impl Row {
    /// Processes that have measured it.
    pub fn processes(&self) -> usize {
        self.rounds_per_process.len().max(1)
    }

    /// The samples of each process, one entry per round.
    pub fn samples_by_process(&self) -> impl Iterator<Item = &[Option<f64>]> {
        let mut rest = &self.samples_us[..];
        let whole = [self.samples_us.len()];
        let counts = match self.rounds_per_process.is_empty() {
            true => whole.to_vec(),
            false => self.rounds_per_process.clone(),
        };
        counts.into_iter().map(move |count| {
            let (process, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            process
        })
    }

    /// Host time of its plan, if it makes one for each step. A plan that can be made ahead is made
    /// once for all steps of a shape.
    pub fn plan_us(&self) -> Option<f64> {
        match self.facts.contains_key(PLANNED_AHEAD) {
            true => None,
            false => self.facts.get(PLAN_US)?.as_f64(),
        }
    }

    /// Adds the row of another process, which has the same key. A failure in one process is a
    /// failure; ratios to other rows are to be computed anew.
    pub fn add_process(&mut self, other: Row) {
        let number = self.processes() + 1;
        if self.status == Status::Ok && other.status != Status::Ok {
            let reason = other.reason.unwrap_or_default();
            self.reason = Some(format!("in process {number}: {reason}"));
            self.status = other.status;
            self.verified = false;
            self.checked_rounds = None;
            self.time = None;
            self.metrics = Metrics::default();
        }
        (self.speedup, self.against, self.against_best) = (None, Vec::new(), None);
        let offset = self.samples_us.len();
        if self.rounds_per_process.is_empty() {
            self.rounds_per_process.push(offset);
        }
        self.rounds_per_process.push(other.samples_us.len());
        self.samples_us.extend(other.samples_us);
        self.dropped
            .extend(other.dropped.into_iter().map(|mut sample| {
                sample.round += offset;
                sample
            }));
        let mean = |ours: Option<f64>, theirs: Option<f64>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => Some(ours + (theirs - ours) / number as f64),
            (one, other) => one.or(other),
        };
        self.enqueue_us = mean(self.enqueue_us, other.enqueue_us);
        self.kernel_samples_us.extend(other.kernel_samples_us);
        let kernels = Summary::of(&self.kernel_samples_us);
        self.kernel_us = kernels.ok().map(|kernels| kernels.median);
        self.cross_check = self.cross_check.take().or(other.cross_check);
        worst_errors(&mut self.errors, other.errors);
        self.clocks = match (self.clocks.take(), other.clocks) {
            (Some(ours), Some(theirs)) => Some(widest(ours, theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        for warning in other.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        self.add_facts(&other.facts, number);
        if let (Some(time), Some(theirs)) = (&self.time, other.time) {
            let kept: Vec<f64> = self.samples_us.iter().flatten().copied().collect();
            let stop = match time.stop {
                StopReason::Precise => theirs.stop,
                stop => stop,
            };
            match Summary::of(&kept) {
                Ok(summary) => {
                    self.metrics.scale(time.median_us / summary.median);
                    self.time = Some(Time::new(&summary, stop));
                }
                Err(error) => {
                    self.status = Status::Invalid;
                    self.reason = Some(error.to_string());
                }
            }
            self.checked_rounds = self
                .checked_rounds
                .zip(other.checked_rounds)
                .map(|(a, b)| a + b);
            self.metrics.energy_j = mean(self.metrics.energy_j, other.metrics.energy_j);
            self.metrics.cycles = mean(self.metrics.cycles, other.metrics.cycles);
        }
    }

    /// Planning time is averaged; what a process chose differently is worth a warning.
    fn add_facts(&mut self, facts: &BTreeMap<String, serde_json::Value>, number: usize) {
        for (name, value) in facts {
            match self.facts.get(name) {
                None => {
                    self.facts.insert(name.clone(), value.clone());
                }
                Some(known) if name == PLAN_US => {
                    if let (Some(known), Some(value)) = (known.as_f64(), value.as_f64()) {
                        let mean = known + (value - known) / number as f64;
                        self.facts.insert(name.clone(), mean.round().into());
                    }
                }
                Some(known) if known != value && !VOLATILE.contains(&&**name) => {
                    let warning = format!("'{name}' was not the same in every process");
                    if !self.warnings.contains(&warning) {
                        self.warnings.push(warning);
                    }
                }
                Some(_) => {}
            }
        }
    }
}

/// The larger error of each tensor.
fn worst_errors(errors: &mut Vec<Errors>, others: Vec<Errors>) {
    for other in others {
        let share = |errors: &Errors| errors.rel_l2.map(|error| error / errors.budget.rel_l2);
        match errors.iter_mut().find(|known| known.tensor == other.tensor) {
            Some(known) if share(known) < share(&other) => *known = other,
            Some(_) => {}
            None => errors.push(other),
        }
    }
}

fn widest(ours: Clocks, theirs: Clocks) -> Clocks {
    let both = |of: fn(&Clocks) -> Option<f64>, pick: fn(f64, f64) -> f64| {
        of(&ours).into_iter().chain(of(&theirs)).reduce(pick)
    };
    let mut throttle_reasons = ours.throttle_reasons.clone();
    for reason in theirs.throttle_reasons.iter() {
        if !throttle_reasons.contains(reason) {
            throttle_reasons.push(reason.clone());
        }
    }
    Clocks {
        reference_mhz: both(|clocks| clocks.reference_mhz, f64::max),
        median_mhz: both(|clocks| clocks.median_mhz, f64::midpoint),
        min_mhz: both(|clocks| clocks.min_mhz, f64::min),
        max_mhz: both(|clocks| clocks.max_mhz, f64::max),
        power_w: both(|clocks| clocks.power_w, f64::max),
        temperature_c: both(|clocks| clocks.temperature_c, f64::max),
        throttle_reasons,
    }
}

impl Metrics {
    /// Rates after a time that is shorter by this factor.
    fn scale(&mut self, factor: f64) {
        for rate in [
            &mut self.tflops,
            &mut self.tbps,
            &mut self.roof_share,
            &mut self.queries_per_second,
        ] {
            *rate = rate.map(|rate| rate * factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_samples::{failed_row, ok_row};
    use crate::DroppedSample;

    #[test]
    fn a_row_of_three_processes_has_all_their_samples() {
        let mut row = ok_row("w", "ours", 1.0);
        row.facts.insert(PLAN_US.into(), 10.into());
        let rate = row.metrics.tbps.unwrap();
        for (scale, plan_us) in [(1.0, 20), (1.3, 30)] {
            let mut other = ok_row("w", "ours", scale);
            other.dropped = vec![DroppedSample {
                round: 4,
                time_us: 1.0,
                clock_mhz: None,
                reason: "clock".into(),
            }];
            other.samples_us[4] = None;
            other.facts.insert(PLAN_US.into(), plan_us.into());
            row.add_process(other);
        }
        assert_eq!((row.processes(), row.samples_us.len()), (3, 180));
        assert_eq!(row.rounds_per_process, [60, 60, 60]);
        let lengths: Vec<usize> = row.samples_by_process().map(<[_]>::len).collect();
        assert_eq!(lengths, [60, 60, 60]);
        let rounds: Vec<usize> = row.dropped.iter().map(|sample| sample.round).collect();
        assert_eq!(rounds, [64, 124]);
        let time = row.time.as_ref().unwrap();
        assert_eq!((time.count, row.checked_rounds), (178, Some(6)));
        assert_eq!(row.plan_us(), Some(20.0));
        assert_eq!((row.enqueue_us, row.kernel_us), (Some(6.5), Some(99.0)));
        assert_eq!(row.kernel_samples_us.len(), 9);
        let samples: Vec<f64> = row.samples_us.iter().flatten().copied().collect();
        assert_eq!(time.median_us, Summary::of(&samples).unwrap().median);
        let expected = 4.0e2 / time.median_us;
        assert!(
            (row.metrics.tbps.unwrap() / expected - 1.0).abs() < 1e-9,
            "{rate}"
        );
        assert!(row.warnings.is_empty());
    }

    #[test]
    fn a_failure_in_one_process_is_a_failure() {
        let wrong = || failed_row("w", "ours", Status::Wrong, "off by one");
        let mut first = ok_row("w", "ours", 1.0);
        first.add_process(wrong());
        assert_eq!(first.status, Status::Wrong);
        assert_eq!(first.reason.as_deref(), Some("in process 2: off by one"));
        assert!(first.time.is_none() && !first.verified);
        let mut second = wrong();
        second.add_process(ok_row("w", "ours", 1.0));
        assert_eq!((second.status, second.processes()), (Status::Wrong, 2));
        assert_eq!(second.reason.as_deref(), Some("off by one"));
        assert_eq!(second.rounds_per_process, [0, 60]);
    }

    #[test]
    fn a_choice_that_changes_is_told() {
        let mut row = ok_row("w", "ours", 1.0);
        let mut other = ok_row("w", "ours", 1.0);
        other.facts.insert("tile".into(), "64x64".into());
        row.add_process(other);
        assert_eq!(row.warnings, ["'tile' was not the same in every process"]);
    }
}
