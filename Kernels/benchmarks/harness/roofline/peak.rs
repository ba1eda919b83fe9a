//! One roof: the fastest run of the best launch shape.

use std::fmt::Display;
use std::time::{Duration, Instant};

use device::{Cache, ContenderError, Device, Queue, Sample, SampleError, SampleMode, Stream};
use record::Roof;

use crate::RooflineError;

/// Samples to choose between shapes, and minimum samples and duration for the chosen one, so that a
/// short disturbance does not affect all of them.
const CHOOSING_SAMPLES: usize = 3;
const FINAL_SAMPLES: usize = 9;
const FINAL_TIME: Duration = Duration::from_millis(100);

/// A measured roof.
#[derive(Clone, Debug, PartialEq)]
pub struct Peak {
    /// `hbm_copy`, `tensor_bf16`, ...
    pub name: String,
    /// In `unit`, from the fastest sample: a roof is what the device can do, and one that is too low
    /// would reject honest times as impossible.
    pub value: f64,
    /// `TB/s` or `TFLOP/s`.
    pub unit: &'static str,
    /// The shape that reached it.
    pub shape: String,
    /// Core clock during the measurement, if available.
    pub clock_mhz: Option<f64>,
}

impl Peak {
    /// As result files keep it.
    pub fn to_roof(&self, measured_at: Option<String>) -> Roof {
        Roof {
            name: self.name.clone(),
            value: self.value,
            unit: self.unit.to_string(),
            measured_at,
        }
    }
}

/// What a roof counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Bytes(f64),
    Flops(f64),
}

impl Amount {
    fn unit(self) -> &'static str {
        match self {
            Amount::Bytes(_) => "TB/s",
            Amount::Flops(_) => "TFLOP/s",
        }
    }

    /// In tera per second.
    fn rate(self, elapsed_us: f64) -> f64 {
        let (Amount::Bytes(amount) | Amount::Flops(amount)) = self;
        amount / elapsed_us / 1e6
    }
}

/// Times `run` in every shape, then takes more samples of the best one.
pub(crate) fn best_of<S: Display + Copy>(
    device: &dyn Device,
    name: &str,
    shapes: &[S],
    amount: impl Fn(S) -> Amount,
    mut run: impl FnMut(S, Stream) -> Result<(), ContenderError>,
) -> Result<Peak, RooflineError> {
    let mut measure = |shape: S, count, least_time| -> Result<Peak, RooflineError> {
        let fastest = fastest(device, name, count, least_time, &mut |stream| {
            run(shape, stream)
        })?;
        Ok(Peak {
            name: name.to_string(),
            value: amount(shape).rate(fastest.elapsed_us),
            unit: amount(shape).unit(),
            shape: shape.to_string(),
            clock_mhz: fastest.clock_mhz,
        })
    };
    let mut best: Option<(Peak, S)> = None;
    for shape in shapes {
        let peak = measure(*shape, CHOOSING_SAMPLES, Duration::ZERO)?;
        if best
            .as_ref()
            .is_none_or(|(other, _)| peak.value > other.value)
        {
            best = Some((peak, *shape));
        }
    }
    let (first, shape) = best.expect("at least one shape");
    let again = measure(shape, FINAL_SAMPLES, FINAL_TIME)?;
    Ok(if again.value > first.value {
        again
    } else {
        first
    })
}

/// The fastest sample after one warm-up run.
fn fastest(
    device: &dyn Device,
    name: &str,
    count: usize,
    least_time: Duration,
    run: &mut dyn FnMut(Stream) -> Result<(), ContenderError>,
) -> Result<Sample, RooflineError> {
    let failed = |source| RooflineError::Sample {
        name: name.to_string(),
        source,
    };
    let mode = SampleMode::new(Cache::AsIs);
    device.sample(mode, run).map_err(failed)?;
    let start = Instant::now();
    let mut taken = 0;
    let mut fastest: Option<Sample> = None;
    while taken < count || start.elapsed() < least_time {
        taken += 1;
        let sample = device.sample(mode, run).map_err(failed)?;
        let faster = fastest.is_none_or(|other| sample.elapsed_us < other.elapsed_us);
        if faster && sample.queue != Queue::TimedOut {
            fastest = Some(sample);
        }
    }
    fastest.ok_or_else(|| {
        failed(SampleError::Unsupported(
            "the host was too slow to queue the work; use an idle machine".into(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use device::CpuDevice;

    use super::*;

    #[test]
    fn the_fastest_shape_wins_and_is_measured_more() {
        let device = CpuDevice::open();
        let mut calls = [0; 10];
        let amount = |_| Amount::Bytes(1e6);
        let peak = best_of(&device, "test", &[8u64, 2, 5], amount, |shape, _| {
            calls[shape as usize] += 1;
            std::thread::sleep(Duration::from_millis(shape));
            Ok(())
        })
        .unwrap();
        assert_eq!(peak.shape, "2");
        assert!(calls[2] > CHOOSING_SAMPLES + 1 + FINAL_SAMPLES);
        assert_eq!(calls[8], CHOOSING_SAMPLES + 1);
        assert!(peak.value <= 1e6 / 2e3 / 1e6);
        assert_eq!(peak.unit, "TB/s");
    }

    #[test]
    fn a_refusal_names_the_roof() {
        let refused = best_of(
            &CpuDevice::open(),
            "hbm_copy",
            &[1],
            |_| Amount::Flops(1.0),
            |_, _| Err(ContenderError::new("no")),
        );
        assert_eq!(refused.unwrap_err().to_string(), "roof hbm_copy: no");
    }
}
