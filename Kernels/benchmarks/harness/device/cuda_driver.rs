//! RAII handles for CUDA's driver API, and its errors in words.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::cuda_scrub::Scrub;
use crate::memory::Memory;
use crate::DeviceError;

/// Driver API version that the kernels' runtime needs: CUDA 13.0.
const LEAST_CUDA: i32 = 13000;

/// Turns a driver status into an error that names the call.
pub(crate) fn check<T>(
    call: &'static str,
    result: Result<T, DriverError>,
) -> Result<T, DeviceError> {
    result.map_err(|error| {
        let name = error
            .error_name()
            .map_or("?".into(), |name| name.to_string_lossy());
        let text = error
            .error_string()
            .map_or("?".into(), |text| text.to_string_lossy());
        DeviceError::Driver {
            call,
            status: format!("{name} ({text})"),
            sticky: is_sticky(error.0),
        }
    })
}

/// Turns the runtime's error, as text from the bridge, into the same type.
pub(crate) fn bridge<T>(
    call: &'static str,
    result: Result<T, impl std::fmt::Display>,
) -> Result<T, DeviceError> {
    result.map_err(|error| {
        // The runtime's text does not say whether the context is lost; the context does.
        let sticky = result::ctx::synchronize().is_err_and(|error| is_sticky(error.0));
        DeviceError::Driver {
            call,
            status: error.to_string(),
            sticky,
        }
    })
}

/// Sticky errors: every later call on the context returns them again.
fn is_sticky(status: sys::CUresult) -> bool {
    use sys::CUresult::*;
    matches!(
        status,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_ECC_UNCORRECTABLE
    )
}

/// The primary context of one GPU, shared with the CUDA runtime inside the kernels.
pub(crate) struct Context {
    pub(crate) device: sys::CUdevice,
    /// Newest CUDA version that the driver supports, e.g. 13000.
    pub(crate) driver_cuda: i32,
    pub(crate) scrub: Scrub,
}

impl Context {
    /// Makes the first visible GPU current on this thread.
    pub(crate) fn open() -> Result<Rc<Self>, DeviceError> {
        // SAFETY: only loads libraries. cudarc panics if there is none, so check first.
        if !unsafe { sys::is_culib_present() } {
            return Err(unavailable(
                "libcuda.so.1 cannot be loaded",
                "install NVIDIA's driver 580 or newer",
            ));
        }
        result::init().map_err(|error| {
            unavailable(
                &format!("cuInit: {error}"),
                "check that nvidia-smi lists a GPU and that this process may use it",
            )
        })?;
        let mut driver_cuda = 0;
        // SAFETY: writes one integer.
        check("cuDriverGetVersion", unsafe {
            sys::cuDriverGetVersion(&mut driver_cuda).result()
        })?;
        if driver_cuda < LEAST_CUDA {
            let (major, minor) = (driver_cuda / 1000, driver_cuda % 1000 / 10);
            return Err(unavailable(
                &format!("the driver supports CUDA {major}.{minor}, the kernels need 13.0"),
                "install NVIDIA's driver 580 or newer",
            ));
        }
        if check("cuDeviceGetCount", result::device::get_count())? == 0 {
            return Err(unavailable(
                "no GPU is visible",
                "check CUDA_VISIBLE_DEVICES",
            ));
        }
        let device = check("cuDeviceGet", result::device::get(0))?;
        // SAFETY: `device` is valid; the context stays retained until this value drops.
        unsafe {
            let context = check(
                "cuDevicePrimaryCtxRetain",
                result::primary_ctx::retain(device),
            )?;
            check("cuCtxSetCurrent", result::ctx::set_current(context))?;
        }
        Ok(Rc::new(Self {
            device,
            driver_cuda,
            scrub: Scrub::default(),
        }))
    }

    /// Device memory; zero bytes are rounded up to one, because the driver rejects zero.
    pub(crate) fn allocate(self: &Rc<Self>, bytes: usize) -> Result<Memory, DeviceError> {
        // SAFETY: the context is current; the address is freed once, by the closure.
        let address = match unsafe { result::malloc_sync(bytes.max(1)) } {
            Ok(address) => address,
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = result::mem_get_info().map_or(0, |(free, _)| free);
                return Err(DeviceError::OutOfMemory {
                    device: "cuda",
                    bytes,
                    free: format!("{free} free"),
                });
            }
            Err(error) => return check("cuMemAlloc", Err(error)),
        };
        let context = self.clone();
        let release = move || {
            // SAFETY: from `malloc_sync` above, freed here only. After a fault this fails, and the
            // driver frees everything with the process.
            let _ = unsafe { result::free_sync(address) };
            context.scrub.freed(bytes, Instant::now());
        };
        Ok(Memory::new(address as usize, bytes, Box::new(release)))
    }

    /// A device attribute, from the driver.
    pub(crate) fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<u32, DeviceError> {
        // SAFETY: `device` is valid.
        let value = unsafe { result::device::get_attribute(self.device, attribute) };
        Ok(check("cuDeviceGetAttribute", value)? as u32)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

fn unavailable(reason: &str, remedy: &str) -> DeviceError {
    DeviceError::Unavailable {
        reason: reason.to_string(),
        remedy: remedy.to_string(),
    }
}

/// A non-blocking stream: neither it nor the legacy default stream waits for the other.
pub(crate) struct OwnStream(pub(crate) sys::CUstream);

impl OwnStream {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        let kind = result::stream::StreamKind::NonBlocking;
        Ok(Self(check("cuStreamCreate", result::stream::create(kind))?))
    }

    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream lives as long as this value.
        check("cuStreamSynchronize", unsafe {
            result::stream::synchronize(self.0)
        })
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed here only.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

/// A timing event. Its resolution is about 0.5 us.
pub(crate) struct Event(sys::CUevent);

impl Event {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        Ok(Self(check("cuEventCreate", result::event::create(flags))?))
    }

    pub(crate) fn record(&self, stream: &OwnStream) -> Result<(), DeviceError> {
        // SAFETY: both handles are alive.
        check("cuEventRecord", unsafe {
            result::event::record(self.0, stream.0)
        })
    }

    /// Time from this event to `end`; both have completed.
    pub(crate) fn elapsed_us(&self, end: &Event) -> Result<f64, DeviceError> {
        // SAFETY: both handles are alive.
        let elapsed_ms = unsafe { result::event::elapsed(self.0, end.0) };
        Ok(f64::from(check("cuEventElapsedTime", elapsed_ms)?) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed here only.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// Words that host and kernels share: pinned host memory, at the same address for both.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Words {
    /// Host to device: nonzero releases the stream.
    pub(crate) flag: Cell<u32>,
    /// Device to host: how the hold ended.
    pub(crate) outcome: Cell<u32>,
    /// Device to host: cycles, then nanoseconds between the clock stamps.
    pub(crate) stamps: [Cell<u64>; 2],
}

/// `Words` in pinned memory. Accesses are volatile: a kernel may be reading.
pub(crate) struct Pinned(*mut Words);

impl Pinned {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the context is current; freed once, on drop.
        let memory = unsafe { result::malloc_host(std::mem::size_of::<Words>(), flags) };
        let words = check("cuMemHostAlloc", memory)?.cast::<Words>();
        // SAFETY: fresh memory of this size; pinned memory is page-aligned.
        unsafe { words.write(Words::default()) };
        Ok(Self(words))
    }

    pub(crate) fn flag_address(&self) -> usize {
        // SAFETY: points into live memory.
        unsafe { &raw const (*self.0).flag as usize }
    }

    pub(crate) fn outcome_address(&self) -> usize {
        // SAFETY: points into live memory.
        unsafe { &raw const (*self.0).outcome as usize }
    }

    pub(crate) fn stamps_address(&self) -> usize {
        // SAFETY: points into live memory.
        unsafe { &raw const (*self.0).stamps as usize }
    }

    /// Sets all words to 0, while no kernel is reading.
    pub(crate) fn reset(&self) {
        // SAFETY: live memory.
        unsafe { std::ptr::write_volatile(self.0, Words::default()) };
    }

    pub(crate) fn set_flag(&self) {
        // SAFETY: live memory; an aligned word is written at once.
        unsafe { std::ptr::write_volatile(self.flag_address() as *mut u32, 1) };
    }

    pub(crate) fn outcome(&self) -> u32 {
        // SAFETY: live memory.
        unsafe { std::ptr::read_volatile(self.outcome_address() as *const u32) }
    }

    /// Cycles and nanoseconds.
    pub(crate) fn stamps(&self) -> [u64; 2] {
        // SAFETY: live memory.
        unsafe { std::ptr::read_volatile(self.stamps_address() as *const [u64; 2]) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: from `malloc_host`, freed here only.
        let _ = unsafe { result::free_host(self.0.cast()) };
    }
}

/// Pinned host memory, at the same address for the device.
pub(crate) struct Staging(*mut u8);

impl Staging {
    pub(crate) const BYTES: usize = 1 << 20;

    pub(crate) fn new() -> Result<Self, DeviceError> {
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the context is current; freed once, on drop.
        let memory = unsafe { result::malloc_host(Self::BYTES, flags) };
        Ok(Self(check("cuMemHostAlloc", memory)?.cast()))
    }

    pub(crate) fn address(&self) -> usize {
        self.0 as usize
    }

    /// The first `count` values.
    ///
    /// # Safety
    /// They have been written, and nothing writes them while they are borrowed.
    pub(crate) unsafe fn values<T>(&self, count: usize) -> &[T] {
        assert!(count * size_of::<T>() <= Self::BYTES);
        // SAFETY: inside the allocation, which is aligned to a page; the caller knows the rest.
        unsafe { std::slice::from_raw_parts(self.0.cast(), count) }
    }

    /// # Safety
    /// Nobody else uses these bytes while they are borrowed.
    #[expect(clippy::mut_from_ref, reason = "the device writes it too")]
    pub(crate) unsafe fn bytes_mut(&self, start: usize, count: usize) -> &mut [u8] {
        assert!(start + count <= Self::BYTES);
        // SAFETY: inside the allocation.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), count) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: from `malloc_host`, freed here only.
        let _ = unsafe { result::free_host(self.0.cast()) };
    }
}
