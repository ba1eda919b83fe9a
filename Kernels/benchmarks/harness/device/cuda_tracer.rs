//! Cross-checks events against CUPTI's activity records.

use std::cell::OnceCell;

use libraries::{Library, Opened, CUPTI};

use crate::cuda_driver::bridge;
use crate::{Activity, CrossCheck, DeviceError, Sample, SampleError};

/// The harness's kernel right before the first event; the timed work comes after it.
const LAST_BEFORE_WORK: &str = "stamp_head_kernel";

/// CUPTI, loaded on first use: it slows down launches in the process.
#[derive(Default)]
pub(crate) struct Tracer {
    loaded: OnceCell<Result<Opened, String>>,
}

impl Tracer {
    pub(crate) fn obstacle(&self) -> Option<String> {
        self.load().err()
    }

    pub(crate) fn libraries(&self) -> Vec<Library> {
        self.load()
            .map_or(Vec::new(), |opened| opened.records.clone())
    }

    fn load(&self) -> Result<&Opened, String> {
        let loaded = self.loaded.get_or_init(|| {
            let opened = libraries::open(&CUPTI).map_err(|error| error.to_string())?;
            cxx::let_cxx_string!(file = opened.file().to_string_lossy().as_bytes());
            device_cuda::tracer_open(&file).map_err(|error| error.to_string())?;
            Ok(opened)
        });
        loaded.as_ref().map_err(Clone::clone)
    }

    /// Runs `sample` under the tracer and compares the two clocks.
    pub(crate) fn cross_check(
        &self,
        sample: impl FnOnce() -> Result<Sample, SampleError>,
    ) -> Result<CrossCheck, SampleError> {
        self.load().map_err(SampleError::Unsupported)?;
        bridge("tracer_start", device_cuda::tracer_start())?;
        let sampled = sample();
        let stopped = bridge("tracer_stop", device_cuda::tracer_stop());
        let sampled = sampled?;
        let activities = stopped?;
        let own = device_cuda::own_kernel_prefix().to_string();
        let activities = of_the_work(read_records(activities)?, &own);
        let (Some(start_ns), Some(end_ns)) = (
            activities.iter().map(|activity| activity.start_ns).min(),
            activities.iter().map(|activity| activity.end_ns).max(),
        ) else {
            let message = "the tracer saw no kernel, copy or fill in the timed region".to_string();
            return Err(DeviceError::Invalid(message).into());
        };
        Ok(CrossCheck {
            event_us: sampled.elapsed_us,
            activity_us: (end_ns - start_ns) as f64 / 1e3,
            activities,
        })
    }
}

fn read_records(count: usize) -> Result<Vec<Activity>, DeviceError> {
    (0..count)
        .map(|record| {
            Ok(Activity {
                name: bridge("tracer_name", device_cuda::tracer_name(record))?.to_string(),
                start_ns: bridge("tracer_start_ns", device_cuda::tracer_start_ns(record))?,
                end_ns: bridge("tracer_end_ns", device_cuda::tracer_end_ns(record))?,
            })
        })
        .collect()
}

/// Leaves out the harness's own kernels and, in hot mode, the execution that warmed the cache.
fn of_the_work(mut activities: Vec<Activity>, own_prefix: &str) -> Vec<Activity> {
    let begin_ns = activities
        .iter()
        .filter(|activity| {
            activity.name.starts_with(own_prefix) && activity.name.contains(LAST_BEFORE_WORK)
        })
        .map(|activity| activity.end_ns)
        .max()
        .unwrap_or(0);
    activities
        .retain(|activity| !activity.name.starts_with(own_prefix) && activity.start_ns >= begin_ns);
    activities
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(name: &str, start_ns: u64, end_ns: u64) -> Activity {
        Activity {
            name: name.into(),
            start_ns,
            end_ns,
        }
    }

    #[test]
    fn only_the_timed_execution_counts() {
        let seen = vec![
            activity("_ZN14harness_device11hold_kernel", 0, 90),
            activity("work", 100, 200),
            activity("_ZN14harness_device17stamp_head_kernel", 210, 220),
            activity("work", 230, 330),
            activity("memcpy", 330, 340),
            activity("_ZN14harness_device17stamp_tail_kernel", 350, 400),
        ];
        let work = of_the_work(seen, "_ZN14harness_device");
        assert_eq!(
            work,
            [activity("work", 230, 330), activity("memcpy", 330, 340)]
        );
    }
}
