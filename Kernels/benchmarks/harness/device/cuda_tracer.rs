//! Records what the device does, with CUPTI.

use std::cell::{Cell, OnceCell};

use libraries::{Library, Opened, CUPTI};

use crate::cuda_driver::bridge;
use crate::trace::by_sample;
use crate::{Activity, DeviceError, SampleError, Trace};

/// CUPTI, loaded on first use: it slows down launches in the process.
#[derive(Default)]
pub(crate) struct Tracer {
    loaded: OnceCell<Result<Opened, String>>,
    /// Samples taken since it started to record; none while it does not.
    samples: Cell<Option<usize>>,
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

    pub(crate) fn is_recording(&self) -> bool {
        self.samples.get().is_some()
    }

    /// Starts to record.
    pub(crate) fn start(&self) -> Result<(), SampleError> {
        self.load().map_err(SampleError::Unsupported)?;
        bridge("tracer_start", device_cuda::tracer_start())?;
        self.samples.set(Some(0));
        Ok(())
    }

    /// A sample was taken.
    pub(crate) fn count_sample(&self) {
        self.samples
            .set(self.samples.get().map(|samples| samples + 1));
    }

    /// Stops to record, and returns what each sample did.
    pub(crate) fn stop(&self) -> Result<Vec<Trace>, SampleError> {
        let samples = self.samples.take().unwrap_or(0);
        let records = bridge("tracer_stop", device_cuda::tracer_stop())?;
        let own = device_cuda::own_kernel_prefix().to_string();
        let traces = by_sample(read_records(records)?, &own, samples);
        Ok(traces.map_err(DeviceError::Invalid)?)
    }
}

fn read_records(count: usize) -> Result<Vec<Activity>, DeviceError> {
    (0..count)
        .map(|record| {
            Ok(Activity {
                name: bridge("tracer_name", device_cuda::tracer_name(record))?.to_string(),
                stream: bridge("tracer_stream", device_cuda::tracer_stream(record))?,
                in_graph: bridge("tracer_in_graph", device_cuda::tracer_in_graph(record))?,
                start_ns: bridge("tracer_start_ns", device_cuda::tracer_start_ns(record))?,
                end_ns: bridge("tracer_end_ns", device_cuda::tracer_end_ns(record))?,
            })
        })
        .collect()
}
