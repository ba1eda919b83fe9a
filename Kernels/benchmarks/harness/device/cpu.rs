//! The CPU as a device: host memory, the same protocol, the monotonic clock.

use std::alloc::{alloc, dealloc, Layout};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use contender::{Buffer, DeviceInfo, Stream};
use numeric::DType;
use rayon::prelude::*;
use tensor::TensorSpec;

use crate::cpu_cache::Flush;
use crate::cpu_compare::{self, CHUNK_BYTES};
use crate::cpu_load::Load;
use crate::cpu_rest::wait_for_rest;
use crate::memory::ALIGNMENT_BYTES;
use crate::{
    checksum, cpu_info, shared, Cache, Comparison, Device, DeviceError, DeviceState, Enqueue,
    Graph, Memory, Queue, Sample, SampleError, SampleMode, Tiles, Tolerance, Trace,
};

/// How long to watch for a thread that outlives its `enqueue`.
const LATE_WRITE_WAIT: Duration = Duration::from_millis(20);

/// How long threads may go on after a call before others are timed all the same. Who never rests is found elsewhere,
/// and is not waited for in vain again and again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Live allocations: address to size.
type Live = Rc<RefCell<BTreeMap<usize, usize>>>;

/// The host's CPU.
pub struct CpuDevice {
    info: DeviceInfo,
    live: Live,
    flush: Flush,
    load: Load,
    /// Whether other processes can map what it allocates.
    shares: bool,
    /// How long a sample waits for threads of contenders; not at all where others have threads in this process too.
    patience: Cell<Option<Duration>>,
}

impl CpuDevice {
    /// Never fails: there is always a CPU.
    pub fn open() -> Self {
        let info = cpu_info::device_info();
        let flush = Flush::new(info.l2_bytes as usize);
        Self {
            info,
            live: Live::default(),
            flush,
            load: Load::new(),
            shares: false,
            patience: Cell::new(None),
        }
    }

    /// The same with all memory such that another process can map it: see [`crate::shared_at`]. For everybody in a
    /// race, because its pages may be smaller.
    pub fn open_shared() -> Self {
        Self {
            shares: true,
            ..Self::open()
        }
    }

    /// Fresh memory, and what frees it.
    fn obtain(&self, bytes: usize) -> Option<(usize, Box<dyn FnOnce()>)> {
        if self.shares {
            let address = shared::add(bytes.max(1)).ok()?;
            return Some((address, Box::new(move || shared::remove(address))));
        }
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT_BYTES).ok()?;
        // SAFETY: the layout's size is not zero.
        let address = unsafe { alloc(layout) } as usize;
        // SAFETY: from `alloc` with this layout, and `Memory` calls this once.
        let release = move || unsafe { dealloc(address as *mut u8, layout) };
        (address != 0).then(|| -> (usize, Box<dyn FnOnce()>) { (address, Box::new(release)) })
    }

    /// The range as bytes, after checking that it is inside one live allocation.
    fn range(&self, address: usize, bytes: usize) -> Result<&[u8], DeviceError> {
        self.check(address, bytes)?;
        // SAFETY: the range lies inside a live allocation of this device, whose memory was
        // initialized when it was made; the device is single-threaded and no `&mut` is held.
        Ok(unsafe { std::slice::from_raw_parts(address as *const u8, bytes) })
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "device memory is owned by address, not by reference"
    )]
    fn range_mut(&self, address: usize, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.check(address, bytes)?;
        // SAFETY: as in `range`; every caller drops the slice before it makes another.
        Ok(unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) })
    }

    fn check(&self, address: usize, bytes: usize) -> Result<(), DeviceError> {
        let live = self.live.borrow();
        let inside = live
            .range(..=address)
            .next_back()
            .is_some_and(|(start, size)| address - start + bytes <= *size);
        if inside || bytes == 0 {
            return Ok(());
        }
        Err(DeviceError::Invalid(format!(
            "{bytes} bytes at {address:#x} are not in any allocation of the cpu device"
        )))
    }

    fn prepare(&self, cache: Cache, enqueue: &mut Enqueue) -> Result<(), SampleError> {
        match cache {
            Cache::Cold => self.flush.run(&self.live.borrow()),
            Cache::Hot => enqueue(self.stream())?,
            Cache::AsIs => {}
        }
        Ok(())
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        let available = cpu_info::available_bytes();
        let failed = || DeviceError::OutOfMemory {
            device: "cpu",
            bytes,
            free: available.map_or("unknown free".into(), |free| format!("{free} available")),
        };
        // The OS overcommits and kills later: check before, not after.
        if available.is_some_and(|free| bytes as u64 > free) {
            return Err(failed());
        }
        let (address, free) = self.obtain(bytes).ok_or_else(failed)?;
        // SAFETY: that many fresh bytes. Writing them initializes them and faults the pages in now, not inside a
        // sample.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0xFF, bytes.max(1)) };
        self.live.borrow_mut().insert(address, bytes);
        let live = self.live.clone();
        let release = move || {
            live.borrow_mut().remove(&address);
            free();
        };
        Ok(Memory::new(address, bytes, Box::new(release)))
    }

    fn fill(
        &self,
        address: usize,
        spec: &TensorSpec,
        tensor: u32,
        seed: u64,
    ) -> Result<(), DeviceError> {
        let step = CHUNK_BYTES / spec.dtype.size_bytes();
        self.range_mut(address, spec.bytes())?
            .par_chunks_mut(CHUNK_BYTES)
            .enumerate()
            .for_each(|(chunk, out)| tensor::fill_into(spec, tensor, seed, chunk * step, out));
        Ok(())
    }

    fn set_bytes(&self, address: usize, bytes: usize, value: u8) -> Result<(), DeviceError> {
        self.range_mut(address, bytes)?.fill(value);
        Ok(())
    }

    fn first_bytes_not(
        &self,
        ranges: &[Buffer],
        value: u8,
    ) -> Result<Vec<Option<usize>>, DeviceError> {
        let first = |range: &Buffer| {
            let bytes = self.range(range.address, range.bytes)?;
            let bytes = bytes.par_iter().with_min_len(CHUNK_BYTES);
            Ok(bytes.position_first(|byte| *byte != value))
        };
        ranges.iter().map(first).collect()
    }

    fn read(&self, address: usize, out: &mut [u8]) -> Result<(), DeviceError> {
        out.copy_from_slice(self.range(address, out.len())?);
        Ok(())
    }

    fn write(&self, address: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.range_mut(address, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<(), DeviceError> {
        if to.abs_diff(from) < bytes {
            return Err(DeviceError::Invalid(format!(
                "copy of {bytes} bytes from {from:#x} to {to:#x} overlaps"
            )));
        }
        self.range_mut(to, bytes)?
            .copy_from_slice(self.range(from, bytes)?);
        Ok(())
    }

    fn checksums(&self, ranges: &[Buffer]) -> Result<Vec<u64>, DeviceError> {
        let bytes = |range: &Buffer| self.range(range.address, range.bytes);
        let sum = |range| Ok(checksum::of_bytes(bytes(range)?));
        ranges.iter().map(sum).collect()
    }

    fn compare(
        &self,
        actual: usize,
        reference: usize,
        dtype: DType,
        Tiles { elements, step }: Tiles,
        limit: Tolerance,
    ) -> Result<Vec<Comparison>, DeviceError> {
        let size = dtype.size_bytes();
        let (actual, reference) = (
            self.range(actual, elements * size)?.chunks(step * size),
            self.range(reference, elements * size)?.chunks(step * size),
        );
        let tiles = actual.zip(reference);
        Ok(tiles
            .map(|(actual, reference)| cpu_compare::compare(actual, reference, dtype, limit))
            .collect())
    }

    fn stream(&self) -> Stream {
        Stream(0)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn sample(&self, mode: SampleMode, enqueue: &mut Enqueue) -> Result<Sample, SampleError> {
        // Before the work: what a thread does to the output in the meantime would not be seen.
        let clock_mhz = cpu_info::current_clock_mhz();
        self.prepare(mode.cache, enqueue)?;
        let start = Instant::now();
        enqueue(self.stream())?;
        let elapsed = start.elapsed();
        Ok(Sample {
            elapsed_us: elapsed.as_secs_f64() * 1e6,
            clock_mhz,
            queue: Queue::Direct,
            enqueue_us: None,
        })
    }

    fn capture(&self, _enqueue: &mut Enqueue) -> Result<Box<dyn Graph>, SampleError> {
        Err(SampleError::Unsupported(
            "device cpu has no graphs; use --device cuda or drop --timer graph".into(),
        ))
    }

    fn writes_out_of_order(
        &self,
        watched: &[Buffer],
        _value: u8,
        _length: Duration,
        enqueue: &mut Enqueue,
    ) -> Result<bool, SampleError> {
        enqueue(self.stream())?;
        let at_return = self.checksums(watched)?;
        std::thread::sleep(LATE_WRITE_WAIT);
        Ok(at_return != self.checksums(watched)?)
    }

    fn start_trace(&self) -> Result<(), SampleError> {
        let obstacle = self.trace_obstacle().unwrap_or_default();
        Err(SampleError::Unsupported(obstacle))
    }

    fn stop_trace(&self) -> Result<Vec<Trace>, SampleError> {
        Ok(Vec::new())
    }

    fn background_share(&self, window: Duration) -> Option<f64> {
        let before = cpu_info::process_time()?;
        std::thread::sleep(window);
        let used = cpu_info::process_time()?.saturating_sub(before);
        Some(used.as_secs_f64() / window.as_secs_f64())
    }

    fn has_process_alone(&self) {
        self.patience.set(Some(PATIENCE));
    }

    fn wait_for_rest(&self) {
        if let Some(patience) = self.patience.get() {
            let rests = wait_for_rest(patience);
            self.patience.set(Some(match rests {
                true => PATIENCE,
                false => patience / 2,
            }));
        }
    }

    fn look_at_load(&self) {
        self.load.look();
    }

    fn slowed_by_others(&self, length: Duration) -> f64 {
        self.load.slowed_by(length)
    }

    fn trace_obstacle(&self) -> Option<String> {
        Some("device cpu has only one clock, and no activity tracer to check it against".into())
    }

    fn profile(
        &self,
        _label: &str,
        cache: Cache,
        enqueue: &mut Enqueue,
    ) -> Result<(), SampleError> {
        self.prepare(cache, enqueue)?;
        Ok(enqueue(self.stream())?)
    }

    fn state(&self) -> DeviceState {
        cpu_info::state()
    }

    /// Reading the clock takes tens of nanoseconds: not worth subtracting.
    fn timer_overhead_us(&self) -> Result<f64, DeviceError> {
        Ok(0.0)
    }
}

#[cfg(test)]
mod tests;
