//! A CUDA GPU: memory, fill, scans. Timing is in `cuda_sample.rs`.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::time::Duration;

use contender::{Buffer, DeviceInfo, DeviceKind, Stream};
use cudarc::driver::result;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use libraries::Library;
use numeric::DType;
use tensor::{Fill, TensorSpec};

use crate::cuda_driver::{bridge, check, Context, Event, OwnStream, Pinned, Staging};
use crate::cuda_tables::Tables;
use crate::cuda_tracer::Tracer;
use crate::nvml::Readings;
use crate::{
    Cache, Comparison, Device, DeviceError, DeviceState, Enqueue, Facts, Graph, Memory, NonFinite,
    Sample, SampleError, SampleMode, Tiles, Tolerance, Trace,
};

/// The first GPU in CUDA_VISIBLE_DEVICES.
pub struct CudaDevice {
    pub(crate) info: DeviceInfo,
    pub(crate) stream: OwnStream,
    /// Inspects memory while `stream` is held.
    pub(crate) side: OwnStream,
    pub(crate) start: Event,
    pub(crate) stop: Event,
    pub(crate) words: Pinned,
    /// Where scans leave their results, and copies to the host pass.
    pub(crate) staging: Staging,
    /// What the device is asked to copy to it.
    pub(crate) pieces: Staging,
    pub(crate) scratch: Memory,
    pub(crate) stamps: Memory,
    /// Allocated by the first cold sample.
    pub(crate) flush: OnceCell<Memory>,
    pub(crate) epoch: Cell<u64>,
    pub(crate) tracer: Tracer,
    /// Measured by the first sample.
    pub(crate) overhead: OnceCell<Overhead>,
    readings: Readings,
    tables: Tables,
    // Last: everything above is freed within it.
    pub(crate) context: Rc<Context>,
}

/// The overhead of events: usually, and while the tracer records.
#[derive(Clone, Copy)]
pub(crate) struct Overhead {
    pub(crate) plain_us: f64,
    pub(crate) traced_us: f64,
}

impl CudaDevice {
    /// Opens the GPU, loads the harness's kernels and checks that they run on it.
    pub fn open() -> Result<Self, DeviceError> {
        let context = Context::open()?;
        let info = device_info(&context)?;
        let device = Self {
            stream: OwnStream::new()?,
            side: OwnStream::new()?,
            start: Event::new()?,
            stop: Event::new()?,
            words: Pinned::new()?,
            staging: Staging::new()?,
            pieces: Staging::new()?,
            scratch: context.allocate(device_cuda::scratch_bytes())?,
            stamps: context.allocate(device_cuda::stamp_bytes())?,
            flush: OnceCell::new(),
            epoch: Cell::new(0),
            tracer: Tracer::default(),
            overhead: OnceCell::new(),
            readings: Readings::new(info.uuid.as_deref().unwrap_or_default()),
            tables: Tables::default(),
            info,
            context,
        };
        device.set_bytes(device.stamps.address(), device.stamps.bytes(), 0)?;
        device.warm_up()?;
        Ok(device)
    }

    /// Runs every kernel of a sample once: a first launch loads its module, which may wait for the
    /// stream, so the stream must not be held then.
    fn warm_up(&self) -> Result<(), DeviceError> {
        // SAFETY: scratch is live device memory, the stream is live.
        let ran = unsafe {
            let (scratch, stream) = (self.scratch.address(), self.stream().0);
            device_cuda::first_byte_not(scratch, 1, 0, scratch, self.staging.address(), stream)
        };
        ran.map_err(|error| DeviceError::Incompatible {
            arch: self.info.arch.clone(),
            status: error.to_string(),
        })?;
        let nothing = Buffer {
            address: self.scratch.address(),
            bytes: 0,
        };
        self.scan_first_bytes_not(&[nothing], 0, &self.stream)?;
        // SAFETY: as above; the words are live pinned memory. The flag is set, so the hold ends.
        unsafe {
            let stream = self.stream().0;
            let (stamps, sms) = (self.stamps.address(), self.info.multiprocessors);
            let words = &self.words;
            words.set_flag();
            let (flag, outcome) = (words.flag_address(), words.outcome_address());
            let epoch = self.next_epoch();
            bridge("hold", device_cuda::hold(flag, outcome, 1000, stream))?;
            bridge(
                "stamp_head",
                device_cuda::stamp_head(stamps, sms, epoch, stream),
            )?;
            let result = words.stamps_address();
            bridge(
                "stamp_tail",
                device_cuda::stamp_tail(stamps, sms, epoch, 0, result, stream),
            )?;
        }
        self.stream.synchronize()
    }

    /// An error where the time of the program's kernels says nothing.
    fn clock(&self) -> Result<(), DeviceError> {
        match self.info.emulated {
            true => Err(DeviceError::NoClockRewritten),
            false => Ok(()),
        }
    }

    pub(crate) fn next_epoch(&self) -> u64 {
        self.epoch.set(self.epoch.get() + 1);
        self.epoch.get()
    }
}

/// Code of a dtype as `cuda/values.cuh` numbers them.
pub(crate) fn dtype_code(dtype: DType) -> u32 {
    match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::Bf16 => 2,
        // The same elements.
        DType::F8E4M3 | DType::Mxfp8 | DType::Fp8Ue8m0 => 3,
        DType::F8E8M0 => 4,
        DType::I32 => 5,
        DType::I64 => 6,
        DType::Nvfp4 | DType::Mxfp4 => 7,
    }
}

fn device_info(context: &Context) -> Result<DeviceInfo, DeviceError> {
    let device = context.device;
    let major = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // Architecture-specific instructions of Hopper and Blackwell exist only in the `a` targets.
    let suffix = if major >= 9 { "a" } else { "" };
    let uuid = check("cuDeviceGetUuid", result::device::get_uuid(device))?;
    // SAFETY: `device` is valid.
    let memory = check("cuDeviceTotalMem", unsafe {
        result::device::total_mem(device)
    })?;
    let name = check("cuDeviceGetName", result::device::get_name(device))?;
    let arch = format!("sm_{major}{minor}{suffix}");
    let emulated = cfg!(feature = "rewritten");
    if emulated && (major, minor) != (9, 0) {
        return Err(DeviceError::Incompatible {
            arch,
            status: "they were rewritten for sm_90a".to_owned(),
        });
    }
    Ok(DeviceInfo {
        kind: DeviceKind::Cuda,
        name: match emulated {
            true => format!("{name} emulating sm_100a"),
            false => name,
        },
        uuid: Some(uuid_text(uuid.bytes.map(|byte| byte as u8))),
        arch: if emulated { "sm_100a".to_owned() } else { arch },
        compute_capability: Some(if emulated { (10, 0) } else { (major, minor) }),
        multiprocessors: context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: u64::from(context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        memory_bytes: memory as u64,
        shared_bytes_per_block: context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        emulated,
    })
}

/// In the format of nvidia-smi and NVML.
fn uuid_text(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (a, b, c, d, e) = (
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    );
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.context.allocate(bytes)
    }

    fn fill(
        &self,
        address: usize,
        spec: &TensorSpec,
        tensor: u32,
        seed: u64,
    ) -> Result<(), DeviceError> {
        let (elements, dtype) = (spec.elements() as u64, dtype_code(spec.dtype));
        let (key, stream) = (numeric::stream_key(seed, tensor), self.stream().0);
        // SAFETY: the caller owns `spec.bytes()` of device memory at `address`.
        let filled = match &spec.fill {
            Fill::Bytes(bytes) => return self.write(address, bytes),
            Fill::Shaped(shaped) => {
                let (tables, slots) = (self.tables.of(self, shaped)?, shaped.slots());
                // SAFETY: as above; every level, slot and column has an entry, which `Shaped` and
                // `TensorSpec` check.
                unsafe {
                    device_cuda::fill_shaped(
                        address,
                        elements,
                        dtype,
                        key,
                        tables.ranges,
                        tables.levels,
                        tables.factors,
                        slots.outer as u64,
                        slots.inner as u64,
                        slots.run as u64,
                        shaped.factors().len() as u64,
                        stream,
                    )
                }
            }
            Fill::Uniform { low, high } => unsafe {
                device_cuda::fill_uniform(address, elements, dtype, key, *low, *high, stream)
            },
            Fill::Index { below } => unsafe {
                device_cuda::fill_index(address, elements, dtype, key, *below, stream)
            },
        };
        bridge("fill", filled)
    }

    fn set_bytes(&self, address: usize, bytes: usize, value: u8) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller owns the range.
        let set = unsafe { result::memset_d8_async(address as u64, value, bytes, self.stream.0) };
        check("cuMemsetD8Async", set)
    }

    fn first_bytes_not(
        &self,
        ranges: &[Buffer],
        value: u8,
    ) -> Result<Vec<Option<usize>>, DeviceError> {
        self.scan_first_bytes_not(ranges, value, &self.stream)
    }

    fn read(&self, address: usize, out: &mut [u8]) -> Result<(), DeviceError> {
        if !out.is_empty() {
            // SAFETY: the caller owns the range; `out` outlives the wait below.
            let copied = unsafe { result::memcpy_dtoh_async(out, address as u64, self.stream.0) };
            check("cuMemcpyDtoHAsync", copied)?;
        }
        self.stream.synchronize()
    }

    fn read_all(&self, ranges: &[Buffer]) -> Result<Vec<Vec<u8>>, DeviceError> {
        self.read_staged(ranges)
    }

    fn write(&self, address: usize, from: &[u8]) -> Result<(), DeviceError> {
        if !from.is_empty() {
            // SAFETY: as in `read`.
            let copied = unsafe { result::memcpy_htod_async(address as u64, from, self.stream.0) };
            check("cuMemcpyHtoDAsync", copied)?;
        }
        self.stream.synchronize()
    }

    fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<(), DeviceError> {
        if to.abs_diff(from) < bytes {
            return Err(DeviceError::Invalid(format!(
                "copy of {bytes} bytes from {from:#x} to {to:#x} overlaps"
            )));
        }
        if bytes > 0 {
            // SAFETY: the caller owns both ranges.
            let copied =
                unsafe { result::memcpy_dtod_async(to as u64, from as u64, bytes, self.stream.0) };
            check("cuMemcpyDtoDAsync", copied)?;
        }
        self.stream.synchronize()
    }

    fn checksums(&self, ranges: &[Buffer]) -> Result<Vec<u64>, DeviceError> {
        self.scan_checksums(ranges)
    }

    fn non_finite(
        &self,
        address: usize,
        dtype: DType,
        elements: usize,
    ) -> Result<NonFinite, DeviceError> {
        self.scan_non_finite(address, dtype, elements)
    }

    fn compare(
        &self,
        actual: usize,
        reference: usize,
        dtype: DType,
        tiles: Tiles,
        limit: Tolerance,
    ) -> Result<Vec<Comparison>, DeviceError> {
        self.scan_compare(actual, reference, dtype, tiles, limit)
    }

    fn stream(&self) -> Stream {
        Stream(self.stream.0 as usize)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        check("cuCtxSynchronize", result::ctx::synchronize())
    }

    fn sample(&self, mode: SampleMode, enqueue: &mut Enqueue) -> Result<Sample, SampleError> {
        self.clock()?;
        self.take_sample(mode, enqueue)
    }

    fn capture(&self, enqueue: &mut Enqueue) -> Result<Box<dyn Graph>, SampleError> {
        self.clock()?;
        self.capture_graph(enqueue)
    }

    fn writes_out_of_order(
        &self,
        watched: &[Buffer],
        value: u8,
        length: Duration,
        enqueue: &mut Enqueue,
    ) -> Result<bool, SampleError> {
        self.watch_while_held(watched, value, length, enqueue)
    }

    fn start_trace(&self) -> Result<(), SampleError> {
        self.clock()?;
        // Measured with a trace of its own.
        self.overhead()?;
        self.tracer.start()
    }

    fn stop_trace(&self) -> Result<Vec<Trace>, SampleError> {
        self.tracer.stop()
    }

    fn trace_obstacle(&self) -> Option<String> {
        let no_clock = self.clock().err().map(|error| error.to_string());
        no_clock.or_else(|| self.tracer.obstacle())
    }

    fn libraries(&self) -> Vec<Library> {
        self.tracer.libraries()
    }

    fn profile(&self, label: &str, cache: Cache, enqueue: &mut Enqueue) -> Result<(), SampleError> {
        self.clock()?;
        self.run_profiled(label, cache, enqueue)
    }

    fn state(&self) -> DeviceState {
        let cuda = self.context.driver_cuda;
        DeviceState {
            cuda: Some(format!("{}.{}", cuda / 1000, cuda % 1000 / 10)),
            ..self.readings.state()
        }
    }

    fn energy_mj(&self) -> Option<u64> {
        self.readings.energy_mj()
    }

    fn take_counters(&self) -> Option<Facts> {
        let rewritten = ("rewritten_for".to_owned(), "sm_90a".into());
        self.info.emulated.then(|| Facts::from([rewritten]))
    }

    fn timer_overhead_us(&self) -> Result<f64, DeviceError> {
        if self.info.emulated {
            return Ok(0.0);
        }
        Ok(self.overhead()?.plain_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_written_as_nvidia_smi_writes_them() {
        let bytes = std::array::from_fn(|index| index as u8 * 16 + 1);
        assert_eq!(uuid_text(bytes), "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
    }
}
