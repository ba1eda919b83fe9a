//! Energy per execution, from the device's own meter.

use std::time::{Duration, Instant};

use gate::Failure;

use crate::{Course, Lane};

/// Runs between two waits: enough to keep the device busy, few enough to finish on time.
const BURST: usize = 16;

/// Joules per execution, back to back for at least `duration`; none if the device has no meter or
/// the work cannot be repeated because it updates its inputs.
pub fn energy_j(
    course: &Course,
    lane: &mut Lane,
    duration: Duration,
) -> Result<Option<f64>, Failure> {
    let device = course.device();
    let Some(before_mj) = device.state().energy_mj.filter(|_| !course.in_place()) else {
        return Ok(None);
    };
    let (start, mut runs) = (Instant::now(), 0);
    while start.elapsed() < duration {
        for run in runs..runs + BURST {
            lane.enqueue(run % course.sets().len(), device.stream())?;
        }
        runs += BURST;
        device.synchronize()?;
    }
    let after_mj = device.state().energy_mj;
    Ok(after_mj.map(|after_mj| (after_mj - before_mj) as f64 / 1e3 / runs as f64))
}
