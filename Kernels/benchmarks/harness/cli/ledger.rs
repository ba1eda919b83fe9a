//! Where the time of a run goes, by the steps that the worker reports.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::protocol::Step;

/// Seconds per step; unreported time is between steps.
pub struct Ledger {
    step: String,
    since: Instant,
    seconds: BTreeMap<String, f64>,
}

const BETWEEN: &str = "between workloads";

impl Ledger {
    /// `seconds` come from an earlier part of the run.
    pub fn new(seconds: BTreeMap<String, f64>) -> Self {
        Self {
            step: BETWEEN.to_owned(),
            since: Instant::now(),
            seconds,
        }
    }

    pub fn step(&mut self, step: &Step) {
        // Reported again for every sample: merge equal steps.
        if step.what != self.step {
            self.turn(&step.what);
        }
    }

    /// The workload is finished.
    pub fn end(&mut self) {
        self.turn(BETWEEN);
    }

    pub fn seconds(&self) -> BTreeMap<String, f64> {
        self.seconds.clone()
    }

    fn turn(&mut self, next: &str) {
        let past = std::mem::replace(&mut self.step, next.to_owned());
        *self.seconds.entry(past).or_default() += self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_is_booked_once() {
        let start = Instant::now();
        let mut ledger = Ledger::new(BTreeMap::new());
        for what in ["passing the gate", "being timed", "being timed"] {
            let contender = None;
            ledger.step(&Step {
                contender,
                what: what.into(),
            });
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        ledger.end();
        let seconds = ledger.seconds();
        assert_eq!(seconds.len(), 3);
        assert!(seconds["being timed"] >= 0.004);
        assert!(seconds.values().sum::<f64>() <= start.elapsed().as_secs_f64());
    }
}
