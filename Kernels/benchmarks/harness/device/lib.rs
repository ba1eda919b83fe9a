//! The device under measurement: memory, seeded fill, scans, comparison, and one timed sample.
//!
//! Implementations of one trait: [`CpuDevice`], always built, and `CudaDevice` or `PtxDevice`, built
//! with the features `cuda` and `emulated`. The harness above sees only [`Device`], so all run the
//! same protocol. There is no fallback from one to the other: [`open`] returns the requested device
//! or an error with the remedy.

mod checksum;
mod cpu;
mod cpu_cache;
mod cpu_compare;
mod cpu_info;
mod cpu_load;
mod cpu_rest;
#[cfg(feature = "cuda")]
mod cuda_device;
#[cfg(feature = "cuda")]
mod cuda_driver;
#[cfg(feature = "cuda")]
mod cuda_sample;
#[cfg(feature = "cuda")]
mod cuda_scan;
#[cfg(any(feature = "cuda", test))]
mod cuda_scrub;
#[cfg(feature = "cuda")]
mod cuda_tables;
#[cfg(feature = "cuda")]
mod cuda_tracer;
mod error;
mod memory;
#[cfg(feature = "cuda")]
mod nvml;
#[cfg(feature = "emulated")]
mod ptx;
mod sample;
mod shared;
mod state;
mod trace;
mod watch;

pub use contender::{Buffer, ContenderError, DeviceInfo, DeviceKind, Facts, Stream};
pub use cpu::CpuDevice;
pub use cpu_info::{device_info as host_info, process_time};
#[cfg(feature = "cuda")]
pub use cuda_device::CudaDevice;
pub use error::{DeviceError, SampleError};
pub use memory::{Comparison, Memory, NonFinite, Tiles, Tolerance};
#[cfg(feature = "emulated")]
pub use ptx::{emulated_capability, PtxDevice};
pub use sample::{Cache, Queue, Sample, SampleMode};
pub use shared::{file_without_name, shared_at, SharedMapping};
pub use state::DeviceState;
pub use trace::{Activity, Place, Trace};
pub use watch::Watch;

use std::time::Duration;

use libraries::Library;
use numeric::DType;
use tensor::TensorSpec;

/// The work under measurement: called with the device's stream, it enqueues one execution.
pub type Enqueue<'a> = dyn FnMut(Stream) -> Result<(), ContenderError> + 'a;

/// A recorded execution that can be replayed many times without its host-side launch cost.
pub trait Graph {
    /// Enqueues one replay on `stream`.
    fn launch(&self, stream: Stream) -> Result<(), ContenderError>;
    /// Number of recorded operations; zero means nothing was captured.
    fn nodes(&self) -> usize;
}

/// One device. Addresses are host addresses on the CPU and device addresses on CUDA. Calls take effect in
/// the order of the device's stream, on which contenders enqueue their work too; those that return
/// something wait for it, [`Device::fill`] and [`Device::set_bytes`] need not.
///
/// A device belongs to the thread that opened it.
pub trait Device {
    /// Fixed properties, for the result file and for `Contender::supports`.
    fn info(&self) -> &DeviceInfo;

    /// `bytes` of device memory, aligned to 256 bytes, contents undefined, freed on drop.
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError>;

    /// Writes the tensor's seeded content, bit-identical to `tensor::Inputs`. `tensor` is the
    /// position of `spec` in the problem's list.
    fn fill(
        &self,
        address: usize,
        spec: &TensorSpec,
        tensor: u32,
        seed: u64,
    ) -> Result<(), DeviceError>;

    /// Sets every byte. 0xFF is the poison: NaN in every floating-point dtype of `numeric`.
    fn set_bytes(&self, address: usize, bytes: usize, value: u8) -> Result<(), DeviceError>;

    /// In each range, the offset of the first byte that is not `value`: the canary scan.
    fn first_bytes_not(
        &self,
        ranges: &[Buffer],
        value: u8,
    ) -> Result<Vec<Option<usize>>, DeviceError>;

    /// Copies device memory to the host.
    fn read(&self, address: usize, out: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies of many ranges, which is faster than one by one.
    fn read_all(&self, ranges: &[Buffer]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let read = |range: &Buffer| {
            let mut bytes = vec![0; range.bytes];
            self.read(range.address, &mut bytes).map(|()| bytes)
        };
        ranges.iter().map(read).collect()
    }

    /// Copies host memory to the device.
    fn write(&self, address: usize, from: &[u8]) -> Result<(), DeviceError>;

    /// Copies within the device; the ranges do not overlap.
    fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<(), DeviceError>;

    /// A position-dependent 64-bit checksum of each range, the same on every device for the same bytes.
    fn checksums(&self, ranges: &[Buffer]) -> Result<Vec<u64>, DeviceError>;

    /// Compares values of `dtype`, accumulating in f64; one result per tile. A NaN or an infinity in
    /// `actual` is counted in `non_finite` and in `over_limit`, whatever the limit is.
    fn compare(
        &self,
        actual: usize,
        reference: usize,
        dtype: DType,
        tiles: Tiles,
        limit: Tolerance,
    ) -> Result<Vec<Comparison>, DeviceError>;

    /// NaN and infinities among `elements` of a float type.
    fn non_finite(
        &self,
        address: usize,
        dtype: DType,
        elements: usize,
    ) -> Result<NonFinite, DeviceError> {
        // Compared with itself every finite value passes, so only the others are counted.
        let (limit, whole) = (Tolerance::default(), Tiles::one(elements));
        let found = self.compare(address, address, dtype, whole, limit)?;
        Ok(found
            .first()
            .map_or_else(NonFinite::default, |found| NonFinite {
                count: found.non_finite,
                first: found.first_over,
            }))
    }

    /// The stream that every sample uses. `Stream(0)` on the CPU.
    fn stream(&self) -> Stream;

    /// Waits for all work on the device, including other streams, and reports its errors.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// One timed sample of one execution. [`SampleMode`] says what happens around it.
    /// With [`Cache::Hot`] `enqueue` runs twice: once untimed to warm the cache, once timed.
    fn sample(&self, mode: SampleMode, enqueue: &mut Enqueue) -> Result<Sample, SampleError>;

    /// Records one execution for replay. Time a graph by passing `graph.launch` to `sample`.
    /// [`SampleError::Unsupported`] on the CPU.
    fn capture(&self, enqueue: &mut Enqueue) -> Result<Box<dyn Graph>, SampleError>;

    /// Whether `enqueue` writes to a watched range, filled with the byte `value`, out
    /// of stream order: on CUDA on another stream, on the CPU after it has returned. Run the work once
    /// beforehand: a first launch loads its module, which waits for the stream. `length` is how long
    /// that run took, including everything it started, and determines how long to watch.
    fn writes_out_of_order(
        &self,
        watched: &[Buffer],
        value: u8,
        length: Duration,
        enqueue: &mut Enqueue,
    ) -> Result<bool, SampleError>;

    /// Records everything that the device does until `stop_trace`. Slows samples down and disturbs
    /// later ones: trace once the samples of a race are done.
    fn start_trace(&self) -> Result<(), SampleError>;

    /// What was recorded, by sample taken since `start_trace`.
    fn stop_trace(&self) -> Result<Vec<Trace>, SampleError>;

    /// Share of a core that other threads of the process use while this one sleeps for `window`; none
    /// where it does not matter, because a trace shows the work itself.
    fn background_share(&self, _window: Duration) -> Option<f64> {
        None
    }

    /// From now on whatever else works in this process is a contender's.
    fn has_process_alone(&self) {}

    /// Waits until no other thread of the process works, within reason. Not where it does not matter, or where others
    /// have threads here too.
    fn wait_for_rest(&self) {}

    /// Learns how fast the machine is right now, for `slowed_by_others`; a fraction of a millisecond.
    fn look_at_load(&self) {}

    /// How many times as long work of `length` takes right now as it did at best, because others have the machine too.
    fn slowed_by_others(&self, _length: Duration) -> f64 {
        1.0
    }

    /// Why nothing can be traced here, or `None` if it can. Goes into the result file.
    fn trace_obstacle(&self) -> Option<String>;

    /// Libraries the device loaded for measuring: the tracer, if available. For the result file.
    fn libraries(&self) -> Vec<Library> {
        Vec::new()
    }

    /// Runs `enqueue` once between profiler start and stop, inside a named range, for ncu and nsys;
    /// the cache is prepared as for a sample before the profiler starts.
    fn profile(&self, label: &str, cache: Cache, enqueue: &mut Enqueue) -> Result<(), SampleError>;

    /// Readings that change: clocks, power, temperature, throttling. Never changes a setting.
    fn state(&self) -> DeviceState;

    /// Energy used since the driver was loaded, in mJ; the difference of two readings is the energy of
    /// the work between them. None if there is no meter.
    fn energy_mj(&self) -> Option<u64> {
        None
    }

    /// In how many ways the device may execute the same work, which must be right in all of them: schedules of an
    /// interpreter. Hardware has its own.
    fn ways(&self) -> usize {
        1
    }

    /// From now on work is executed in this one, counted round.
    fn execute_in(&self, _way: usize) {}

    /// What the work did since the last call, on a device that counts and has no clock; none elsewhere.
    fn take_counters(&self) -> Option<Facts> {
        None
    }

    /// The timer's overhead in us: measured once, subtracted from every sample, and recorded in the
    /// result file.
    fn timer_overhead_us(&self) -> Result<f64, DeviceError>;
}

/// Opens the device of `kind`. CUDA without a CUDA build, a driver or a GPU is an error that names
/// the remedy, never a fallback.
pub fn open(kind: DeviceKind) -> Result<Box<dyn Device>, DeviceError> {
    match kind {
        DeviceKind::Cpu => Ok(Box::new(CpuDevice::open())),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => Ok(Box::new(CudaDevice::open()?)),
        #[cfg(feature = "emulated")]
        DeviceKind::Cuda => Err(DeviceError::Emulated),
        #[cfg(not(any(feature = "cuda", feature = "emulated")))]
        DeviceKind::Cuda => Err(DeviceError::NotBuilt),
        #[cfg(feature = "emulated")]
        DeviceKind::Ptx => Ok(Box::new(PtxDevice::open()?)),
        #[cfg(not(feature = "emulated"))]
        DeviceKind::Ptx => Err(DeviceError::NotEmulated),
    }
}

/// The same for a program that was built for `arch`, and may have no kernels of its own.
pub fn open_for(kind: DeviceKind, arch: &str) -> Result<Box<dyn Device>, DeviceError> {
    match kind {
        #[cfg(feature = "emulated")]
        DeviceKind::Ptx if arch != "none" => Ok(Box::new(PtxDevice::open_for(arch)?)),
        kind => {
            // Whatever else runs kernels knows what it is.
            let _ = arch;
            open(kind)
        }
    }
}
