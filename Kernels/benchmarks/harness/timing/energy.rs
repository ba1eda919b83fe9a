//! Energy per execution, from the device's own meter.

use std::time::{Duration, Instant};

use gate::Failure;
use serde::{Deserialize, Serialize};

use crate::{Course, Lane, Timing};

/// What is measured after a race.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Work per contender, at least.
    pub duration: Duration,
    /// Only of long executions whose clock is limited by power, ours and the fastest other's.
    pub limited_only: bool,
}

/// Shorter executions end before their power draw limits the clock.
const LIMITED_FROM_US: f64 = 200.0;
/// Of the device's maximum clock: a clock below is limited.
const LIMITED_SHARE: f64 = 0.95;

fn is_limited(timing: &Timing, clock_max_mhz: Option<f64>) -> bool {
    let clocks = timing.median_clock_mhz().zip(clock_max_mhz);
    let limited = clocks.is_some_and(|(clock, max)| clock < LIMITED_SHARE * max);
    limited && timing.median_us() >= LIMITED_FROM_US
}

/// Runs between two waits: enough to keep the device busy, few enough to see the meter move.
const BURST_MAX: usize = 16;
/// Time between two readings: long beside one of them, while the device idles, and short beside a
/// step of the meter.
const READ_EVERY: Duration = Duration::from_millis(2);
/// A meter that has not moved for this long does not work.
const PATIENCE: Duration = Duration::from_secs(1);

/// Joules per execution, back to back; none if it is not asked for, if the device has no meter, or if
/// the work cannot be repeated because it updates its inputs.
pub fn energy_j(
    course: &Course,
    lane: &mut Lane,
    timing: &Timing,
    clock_max_mhz: Option<f64>,
    energy: Energy,
) -> Result<Option<f64>, Failure> {
    let (device, sets) = (course.device(), course.sets().len());
    let wanted = !energy.limited_only || is_limited(timing, clock_max_mhz);
    if course.in_place() || !wanted {
        return Ok(None);
    }
    let burst = (READ_EVERY.as_secs_f64() * 1e6 / timing.median_us()) as usize;
    let burst = burst.clamp(1, BURST_MAX);
    let mut meter = Meter::new(energy.duration);
    let (start, mut runs) = (Instant::now(), 0);
    loop {
        let Some(energy_mj) = device.energy_mj() else {
            return Ok(None);
        };
        match meter.read(energy_mj, runs, start.elapsed()) {
            Reading::More => {}
            Reading::Done(joules) => return Ok(Some(joules)),
            Reading::Stuck => return Ok(None),
        }
        let reading = Instant::now();
        while reading.elapsed() < READ_EVERY {
            for run in runs..runs + burst {
                lane.enqueue(run % sets, device.stream())?;
            }
            runs += burst;
            device.synchronize()?;
        }
    }
}

/// A meter moves in steps of its own, some tens of milliseconds apart on NVIDIA's cards. Energy and
/// runs are counted between two steps; from the first reading to the last, either end would be off by
/// up to a step.
struct Meter {
    duration: Duration,
    last_mj: Option<u64>,
    moved: Duration,
    first: Option<Mark>,
}

#[derive(Clone, Copy)]
struct Mark {
    energy_mj: u64,
    runs: usize,
    time: Duration,
}

#[derive(Debug, PartialEq)]
enum Reading {
    More,
    Done(f64),
    Stuck,
}

impl Meter {
    fn new(duration: Duration) -> Self {
        Self {
            duration,
            last_mj: None,
            moved: Duration::ZERO,
            first: None,
        }
    }

    fn read(&mut self, energy_mj: u64, runs: usize, time: Duration) -> Reading {
        let before = self.last_mj.replace(energy_mj);
        if before.is_none_or(|before| before == energy_mj) {
            return match time - self.moved > PATIENCE {
                true => Reading::Stuck,
                false => Reading::More,
            };
        }
        self.moved = time;
        let first = *self.first.get_or_insert(Mark {
            energy_mj,
            runs,
            time,
        });
        match runs > first.runs && time - first.time >= self.duration {
            true => {
                let joules = (energy_mj - first.energy_mj) as f64 / 1e3;
                Reading::Done(joules / (runs - first.runs) as f64)
            }
            false => Reading::More,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Readings every 3 ms of a meter that moves every 20 ms, from runs of 1 ms and 0.5 J.
    fn metered(duration: Duration) -> (Reading, u32) {
        let mut meter = Meter::new(duration);
        for time_ms in (7..).step_by(3) {
            let energy_mj = 1_000_000 + 500 * (time_ms / 20 * 20) as u64;
            match meter.read(energy_mj, time_ms as usize, time_ms as u32 * MS) {
                Reading::More => {}
                reading => return (reading, time_ms as u32),
            }
        }
        unreachable!("the meter moves");
    }

    #[test]
    fn energy_is_counted_between_steps_of_the_meter() {
        let (Reading::Done(joules), end_ms) = metered(100 * MS) else {
            panic!("no energy");
        };
        assert!((joules - 0.5).abs() < 0.01, "{joules}");
        assert!((120..150).contains(&end_ms), "{end_ms}");
    }

    #[test]
    fn a_meter_that_does_not_move_is_given_up() {
        let mut meter = Meter::new(100 * MS);
        assert_eq!(meter.read(5, 0, MS), Reading::More);
        assert_eq!(meter.read(5, 900, 900 * MS), Reading::More);
        assert_eq!(meter.read(5, 1100, 1100 * MS), Reading::Stuck);
    }
}
