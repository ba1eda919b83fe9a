//! One sample on CUDA: flush, hold the stream, stamp, event, work, event, stamp, release, wait.
//!
//! Everything is queued while the stream is held, so the device runs the timed part without waiting
//! for the host. Nothing of the harness runs between the two events.

use std::time::{Duration, Instant};

use contender::{Buffer, ContenderError, Stream};
use cudarc::driver::{result, sys};

use crate::cuda_device::{CudaDevice, Overhead};
use crate::cuda_driver::{bridge, check};
use crate::{
    Cache, Device, DeviceError, Enqueue, Graph, Queue, Sample, SampleError, SampleMode, Trace,
};

/// How the hold kernel ended: `kReleased` or `kTimedOut` in `cuda/kernels.h`.
const RELEASED: u32 = 1;
const TIMED_OUT: u32 = 2;

/// Minimum time between the clock stamps, so that their error of a few ns stays below 0.1 %.
const CLOCK_WINDOW: Duration = Duration::from_micros(50);

/// Size of the flush buffer in L2 sizes: two are written, two others read.
const FLUSH_FACTOR: usize = 4;

/// How long to watch for writes by work that does not wait for the held stream: three times as long
/// as it took with nothing held and all streams synchronised, plus a little, up to a limit.
fn escape_wait(length: Duration) -> Duration {
    (3 * length + Duration::from_millis(2)).min(Duration::from_millis(20))
}

/// How long the stream is held meanwhile at most, where kernels are emulated.
const EMULATED_HOLD_LIMIT: Duration = Duration::from_secs(60);

/// Work that the tracer also times: whatever events show beyond it is their own overhead.
const CALIBRATION_NS: u64 = 20_000;
const CALIBRATION_SAMPLES: usize = 11;

/// A held stream, released on drop, so that an error or panic in the work leaves no kernel behind.
struct Hold<'a>(&'a CudaDevice);

impl<'a> Hold<'a> {
    fn new(device: &'a CudaDevice, limit: Duration) -> Result<Self, DeviceError> {
        device.words.reset();
        let (flag, outcome) = (device.words.flag_address(), device.words.outcome_address());
        // SAFETY: the words live as long as the device, which outlives the kernel: every path from
        // here waits for the stream.
        let held =
            unsafe { device_cuda::hold(flag, outcome, limit.as_nanos() as u64, device.stream().0) };
        bridge("hold", held)?;
        Ok(Self(device))
    }

    fn timed_out(&self) -> bool {
        self.0.words.outcome() == TIMED_OUT
    }

    /// Releases, waits for the stream, and returns whether it was held to the end.
    fn release(self) -> Result<Queue, DeviceError> {
        let device = self.0;
        drop(self);
        device.stream.synchronize()?;
        match device.words.outcome() {
            RELEASED => Ok(Queue::Held),
            TIMED_OUT => Ok(Queue::TimedOut),
            other => Err(DeviceError::Invalid(format!(
                "the hold kernel ended with {other}: its memory was overwritten"
            ))),
        }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.words.set_flag();
    }
}

impl CudaDevice {
    pub(crate) fn take_sample(
        &self,
        mode: SampleMode,
        enqueue: &mut Enqueue,
    ) -> Result<Sample, SampleError> {
        let overhead = self.overhead()?;
        let raw = self.raw_sample(mode, enqueue)?;
        let overhead_us = match self.tracer.is_recording() {
            true => overhead.traced_us,
            false => overhead.plain_us,
        };
        Ok(Sample {
            elapsed_us: raw.elapsed_us - overhead_us,
            ..raw
        })
    }

    /// A sample as the events show it.
    fn raw_sample(&self, mode: SampleMode, enqueue: &mut Enqueue) -> Result<Sample, SampleError> {
        self.context.scrub.wait();
        if mode.cache == Cache::Cold {
            self.flush_cache()?;
        }
        let hold = Hold::new(self, mode.hold_limit)?;
        let queued = self.queue_timed(mode.cache, enqueue);
        let queue = hold.release();
        // The work's own error says more than what it did to the device.
        let enqueue_us = queued?;
        let queue = queue?;
        self.tracer.count_sample();
        Ok(Sample {
            elapsed_us: self.start.elapsed_us(&self.stop)?,
            clock_mhz: self.stamped_clock_mhz(),
            queue,
            enqueue_us: Some(enqueue_us),
        })
    }

    /// Returns the host time of the timed work.
    fn queue_timed(&self, cache: Cache, enqueue: &mut Enqueue) -> Result<f64, SampleError> {
        let stream = self.stream();
        let (stamps, sms) = (self.stamps.address(), self.info.multiprocessors);
        let (epoch, window_ns) = (self.next_epoch(), CLOCK_WINDOW.as_nanos() as u64);
        if cache == Cache::Hot {
            enqueue(stream)?;
        }
        // SAFETY: stamps and words live as long as the device.
        let head = unsafe { device_cuda::stamp_head(stamps, sms, epoch, stream.0) };
        bridge("stamp_head", head)?;
        self.start.record(&self.stream)?;
        let entry = Instant::now();
        enqueue(stream)?;
        let enqueue_us = entry.elapsed().as_secs_f64() * 1e6;
        self.stop.record(&self.stream)?;
        let result = self.words.stamps_address();
        // SAFETY: as above.
        let tail =
            unsafe { device_cuda::stamp_tail(stamps, sms, epoch, window_ns, result, stream.0) };
        bridge("stamp_tail", tail)?;
        Ok(enqueue_us)
    }

    fn stamped_clock_mhz(&self) -> Option<f64> {
        let [cycles, nanoseconds] = self.words.stamps();
        (nanoseconds > 0).then(|| cycles as f64 / nanoseconds as f64 * 1e3)
    }

    fn flush_cache(&self) -> Result<(), DeviceError> {
        let buffer = match self.flush.get() {
            Some(buffer) => buffer,
            None => {
                let made = self.allocate(FLUSH_FACTOR * self.info.l2_bytes as usize)?;
                self.set_bytes(made.address(), made.bytes(), 1)?;
                self.flush.get_or_init(|| made)
            }
        };
        let (address, bytes) = (buffer.address(), buffer.bytes() as u64);
        // SAFETY: the stream lives as long as the device.
        let released = unsafe { device_cuda::release_l2(self.stream().0) };
        bridge("release_l2", released)?;
        // SAFETY: the buffer and scratch live as long as the device.
        let flushed = unsafe {
            device_cuda::flush_l2(address, bytes, self.scratch.address(), self.stream().0)
        };
        bridge("flush_l2", flushed)
    }

    /// Measured once: against the tracer's time for the same work, or, without a tracer, with two
    /// back-to-back events, which is less, so that no reported time is too short.
    pub(crate) fn overhead(&self) -> Result<Overhead, DeviceError> {
        if let Some(overhead) = self.overhead.get() {
            return Ok(*overhead);
        }
        let mode = SampleMode::new(Cache::AsIs);
        let measured = if self.tracer.obstacle().is_some() {
            let empty = repeat(|| Ok(self.raw_sample(mode, &mut |_| Ok(()))?.elapsed_us))?;
            let nothing = median(empty);
            Overhead {
                plain_us: nothing,
                traced_us: nothing,
            }
        } else {
            let mut spin = |stream: Stream| {
                // SAFETY: the stream is the device's.
                unsafe { device_cuda::spin(CALIBRATION_NS, stream.0) }.map_err(ContenderError::new)
            };
            // A first launch loads its module, which must not happen while the stream is held.
            spin(self.stream()).map_err(|error| DeviceError::Invalid(error.to_string()))?;
            self.synchronize()?;
            let plain = repeat(|| Ok(self.raw_sample(mode, &mut spin)?.elapsed_us))?;
            self.tracer.start().map_err(as_device_error)?;
            let traced = repeat(|| Ok(self.raw_sample(mode, &mut spin)?.elapsed_us));
            let traces = self.tracer.stop().map_err(as_device_error)?;
            let traced = median(traced?);
            let activities: Option<Vec<f64>> = traces.iter().map(Trace::activity_us).collect();
            let activity = median(activities.ok_or_else(|| {
                DeviceError::Invalid("the tracer did not see the harness's own work".into())
            })?);
            Overhead {
                plain_us: (median(plain) - activity).max(0.0),
                traced_us: (traced - activity).max(0.0),
            }
        };
        Ok(*self.overhead.get_or_init(|| measured))
    }

    pub(crate) fn watch_while_held(
        &self,
        watched: &[Buffer],
        value: u8,
        length: Duration,
        enqueue: &mut Enqueue,
    ) -> Result<bool, SampleError> {
        self.synchronize()?;
        // Emulated kernels of other programs keep a shared GPU busy for seconds.
        let limit = match self.info.emulated {
            true => EMULATED_HOLD_LIMIT,
            false => SampleMode::HOLD_LIMIT,
        };
        let hold = Hold::new(self, limit)?;
        let outcome = enqueue(self.stream())
            .map_err(SampleError::from)
            .and_then(|()| {
                if hold.timed_out() {
                    return Err(SampleError::Unsupported(
                        "the work waits for its own stream, so its stream order cannot be checked"
                            .into(),
                    ));
                }
                std::thread::sleep(escape_wait(length));
                // On the side stream, while the other one is held: nobody else uses scratch.
                let firsts = self.scan_first_bytes_not(watched, value, &self.side)?;
                let written = firsts.iter().any(Option::is_some);
                if hold.timed_out() {
                    return Err(SampleError::Unsupported(
                        "the GPU was too busy to check the stream order: let no other program use \
                         it, and repeat"
                            .into(),
                    ));
                }
                Ok(written)
            });
        let released = hold.release();
        // Work on other streams must finish before its memory is reused.
        let synchronized = self.synchronize();
        let written = outcome?;
        released?;
        synchronized?;
        Ok(written)
    }

    pub(crate) fn capture_graph(
        &self,
        enqueue: &mut Enqueue,
    ) -> Result<Box<dyn Graph>, SampleError> {
        self.stream.synchronize()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live and idle; the capture is ended right below on every path.
        check("cuStreamBeginCapture", unsafe {
            result::stream::begin_capture(self.stream.0, mode)
        })?;
        let recorded = enqueue(self.stream());
        // SAFETY: ends the capture begun above.
        let graph = unsafe { result::stream::end_capture(self.stream.0) };
        recorded?;
        let graph = graph.map_err(|error| {
            SampleError::Unsupported(format!(
                "the work cannot be captured as a graph (does it synchronise or allocate?): {error}"
            ))
        })?;
        if graph.is_null() {
            return Err(SampleError::Unsupported(
                "the capture produced no graph".into(),
            ));
        }
        Ok(Box::new(CudaGraph::new(graph)?))
    }

    pub(crate) fn run_profiled(
        &self,
        label: &str,
        cache: Cache,
        enqueue: &mut Enqueue,
    ) -> Result<(), SampleError> {
        match cache {
            Cache::Cold => self.flush_cache()?,
            Cache::Hot => enqueue(self.stream())?,
            Cache::AsIs => {}
        }
        self.synchronize()?;
        // SAFETY: no arguments; without a profiler attached it does nothing.
        check(
            "cuProfilerStart",
            unsafe { sys::cuProfilerStart() }.result(),
        )?;
        cxx::let_cxx_string!(label = label);
        device_cuda::range_push(&label);
        let ran = enqueue(self.stream());
        let synchronized = self.synchronize();
        device_cuda::range_pop();
        // SAFETY: as above.
        let stopped = check("cuProfilerStop", unsafe { sys::cuProfilerStop() }.result());
        ran?;
        synchronized?;
        Ok(stopped?)
    }
}

fn repeat<T>(sample: impl FnMut() -> Result<T, SampleError>) -> Result<Vec<T>, DeviceError> {
    std::iter::repeat_with(sample)
        .take(CALIBRATION_SAMPLES)
        .collect::<Result<_, _>>()
        .map_err(as_device_error)
}

/// For work of the harness's own.
fn as_device_error(error: SampleError) -> DeviceError {
    DeviceError::Invalid(error.to_string())
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct CudaGraph {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: usize,
}

impl CudaGraph {
    /// Takes over a captured graph.
    fn new(graph: sys::CUgraph) -> Result<Self, DeviceError> {
        let mut this = Self {
            graph,
            executable: std::ptr::null_mut(),
            nodes: 0,
        };
        // SAFETY: `graph` is live; with a null list only the count is returned.
        check("cuGraphGetNodes", unsafe {
            sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &mut this.nodes).result()
        })?;
        // SAFETY: `graph` is live; the executable is destroyed on drop.
        let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut this.executable, graph, 0) };
        check("cuGraphInstantiate", status.result())?;
        Ok(this)
    }
}

impl Graph for CudaGraph {
    fn launch(&self, stream: Stream) -> Result<(), ContenderError> {
        // SAFETY: the executable is live; the stream is the caller's.
        unsafe { result::graph::launch(self.executable, stream.0 as sys::CUstream) }
            .map_err(|error| ContenderError::new(format!("cuGraphLaunch: {error}")))
    }

    fn nodes(&self) -> usize {
        self.nodes
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // SAFETY: both handles are this value's own; null only if instantiation failed.
        unsafe {
            if !self.executable.is_null() {
                let _ = result::graph::exec_destroy(self.executable);
            }
            let _ = result::graph::destroy(self.graph);
        }
    }
}
