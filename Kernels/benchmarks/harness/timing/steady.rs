//! One contender alone, back to back, long enough to reach the clock that its own power draw allows.
//!
//! Samples of a race are short and alternate, so all contenders share one state of heat and power. A
//! block shows a contender in its own.

use std::time::{Duration, Instant};

use device::{Cache, Queue, Sample, SampleMode};
use gate::Failure;
use tensor::{Role, TensorSpec};

use crate::{Course, Lane, Rotation};

/// Shorter blocks end before the device has settled.
pub const BLOCK: Duration = Duration::from_millis(500);

/// The part of a block in which the device settles, untimed.
const SETTLE_SHARE: f64 = 0.2;
/// Executions per sample at first; all must fit into the queue of a held stream.
const BURST: usize = 16;

/// Why executions cannot follow each other without preparation, if so.
pub fn obstacle_to_steady(specs: &[TensorSpec], rotation: &Rotation) -> Option<String> {
    let obstacle = if specs.iter().any(|spec| spec.role == Role::InOut) {
        "its inputs are updated in place and have to be restored between executions"
    } else if rotation.flush {
        "its inputs would stay in the cache between executions; use --cache hot"
    } else {
        return None;
    };
    Some(format!("cannot be measured in steady state: {obstacle}"))
}

/// Executions for at least `length`, on all sets in turn; the sample is the mean of one.
pub(crate) fn block(course: &Course, lane: &mut Lane, length: Duration) -> Result<Sample, Failure> {
    let (device, sets) = (course.device(), course.sets().len());
    let (mut burst, mut runs) = (BURST, 0);
    let mut total = Total::default();
    let start = Instant::now();
    while start.elapsed() < length || total.runs == 0 {
        let settling = start.elapsed() < length.mul_f64(SETTLE_SHARE);
        let mut own_us = None;
        let sample = device.sample(SampleMode::new(Cache::AsIs), &mut |stream| {
            (runs..runs + burst).try_for_each(|run| {
                lane.enqueue(run % sets, stream)?;
                if let Some(us) = lane.elapsed_us(run % sets) {
                    *own_us.get_or_insert(0.0) += us;
                }
                Ok(())
            })
        })?;
        let sample = Sample {
            elapsed_us: own_us.unwrap_or(sample.elapsed_us),
            ..sample
        };
        runs += burst;
        if sample.queue == Queue::TimedOut && burst > 1 {
            burst /= 2;
        } else if !settling {
            total.add(&sample, burst);
        }
    }
    Ok(total.mean())
}

/// Sums over the samples of a block.
#[derive(Default)]
struct Total {
    runs: usize,
    elapsed_us: f64,
    enqueue_us: Option<f64>,
    /// Of the samples with a clock.
    cycles: f64,
    clocked_us: f64,
    queue: Option<Queue>,
}

impl Total {
    fn add(&mut self, sample: &Sample, runs: usize) {
        self.runs += runs;
        self.elapsed_us += sample.elapsed_us;
        if let Some(us) = sample.enqueue_us {
            *self.enqueue_us.get_or_insert(0.0) += us;
        }
        if let Some(mhz) = sample.clock_mhz {
            self.cycles += mhz * sample.elapsed_us;
            self.clocked_us += sample.elapsed_us;
        }
        if self.queue != Some(Queue::TimedOut) {
            self.queue = Some(sample.queue);
        }
    }

    fn mean(&self) -> Sample {
        let runs = self.runs as f64;
        Sample {
            elapsed_us: self.elapsed_us / runs,
            clock_mhz: (self.clocked_us > 0.0).then(|| self.cycles / self.clocked_us),
            queue: self.queue.unwrap_or(Queue::Direct),
            enqueue_us: self.enqueue_us.map(|us| us / runs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numeric::DType;

    #[test]
    fn a_block_is_the_mean_of_its_executions() {
        let sample = |elapsed_us, clock_mhz, queue| Sample {
            elapsed_us,
            clock_mhz,
            queue,
            enqueue_us: Some(8.0),
        };
        let mut total = Total::default();
        total.add(&sample(100.0, Some(1000.0), Queue::Held), 4);
        total.add(&sample(300.0, Some(2000.0), Queue::TimedOut), 4);
        total.add(&sample(400.0, None, Queue::Held), 8);
        let mean = total.mean();
        assert_eq!((mean.elapsed_us, mean.enqueue_us), (50.0, Some(1.5)));
        assert_eq!(mean.clock_mhz, Some(1750.0));
        assert_eq!(mean.queue, Queue::TimedOut);
    }

    #[test]
    fn what_needs_preparation_is_refused_with_the_reason() {
        let mut specs = vec![TensorSpec::input("x", DType::F32, &[8])];
        let rotation = |flush| Rotation { sets: 2, flush };
        assert_eq!(obstacle_to_steady(&specs, &rotation(false)), None);
        let small = obstacle_to_steady(&specs, &rotation(true)).unwrap();
        assert!(small.contains("--cache hot"), "{small}");
        specs.push(TensorSpec::in_out("y", DType::F32, &[8]));
        let in_place = obstacle_to_steady(&specs, &rotation(false)).unwrap();
        assert!(in_place.contains("in place"), "{in_place}");
    }
}
