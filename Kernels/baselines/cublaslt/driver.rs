//! The few driver calls needed to choose an algorithm: memory, a stream, events.

use std::ffi::c_void;

use cudarc::driver::sys;

use crate::Error;

fn check(call: &'static str, status: sys::CUresult) -> Result<(), Error> {
    match status {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(Error::Driver {
            call,
            status: status as i32,
        }),
    }
}

/// Device memory, freed on drop.
pub struct Memory {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Result<Self, Error> {
        let mut address = 0;
        // SAFETY: the current context is the harness's; `address` outlives the call.
        check("cuMemAlloc", unsafe {
            sys::cuMemAlloc_v2(&mut address, bytes)
        })?;
        Ok(Self { address, bytes })
    }

    pub fn zeroed(bytes: usize) -> Result<Self, Error> {
        let memory = Self::new(bytes)?;
        // SAFETY: the memory has this many bytes. Streams of the harness do not wait for the default one.
        unsafe {
            check("cuMemsetD8", sys::cuMemsetD8_v2(memory.address, 0, bytes))?;
            check("cuCtxSynchronize", sys::cuCtxSynchronize())?;
        }
        Ok(memory)
    }

    pub fn address(&self) -> *mut c_void {
        self.address as *mut c_void
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated above, freed once. A failure means that the context is gone.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// A stream with two events, to time work on it with cold caches.
pub struct Stopwatch {
    flushed: Memory,
    stream: sys::CUstream,
    events: [sys::CUevent; 2],
}

impl Stopwatch {
    /// For a device with a cache of `cache_bytes`.
    pub fn new(cache_bytes: usize) -> Result<Self, Error> {
        let mut watch = Self {
            flushed: Memory::new(2 * cache_bytes)?,
            stream: std::ptr::null_mut(),
            events: [std::ptr::null_mut(); 2],
        };
        // SAFETY: the pointers outlive the calls; what was made is destroyed on drop.
        unsafe {
            check(
                "cuStreamCreate",
                sys::cuStreamCreate(
                    &mut watch.stream,
                    sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32,
                ),
            )?;
            for event in &mut watch.events {
                check("cuEventCreate", sys::cuEventCreate(event, 0))?;
            }
        }
        Ok(watch)
    }

    /// Flushes the caches, runs `work` on the stream and waits; returns its time in us. The flush takes
    /// longer than enqueuing the work, so that host latency is not included.
    pub fn time(&self, work: impl FnOnce(usize) -> Result<(), Error>) -> Result<f64, Error> {
        let [start, end] = self.events;
        let mut milliseconds = 0.0;
        // SAFETY: stream and events are alive; the context is current.
        unsafe {
            let Memory { address, bytes } = self.flushed;
            check(
                "cuMemsetD8Async",
                sys::cuMemsetD8Async(address, 0, bytes, self.stream),
            )?;
            check("cuEventRecord", sys::cuEventRecord(start, self.stream))?;
            work(self.stream as usize)?;
            check("cuEventRecord", sys::cuEventRecord(end, self.stream))?;
            check("cuEventSynchronize", sys::cuEventSynchronize(end))?;
            check(
                "cuEventElapsedTime",
                sys::cuEventElapsedTime_v2(&mut milliseconds, start, end),
            )?;
        }
        Ok(f64::from(milliseconds) * 1e3)
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        // SAFETY: created above, destroyed once; null if creation failed.
        unsafe {
            for event in self.events.iter().filter(|event| !event.is_null()) {
                let _ = sys::cuEventDestroy_v2(*event);
            }
            if !self.stream.is_null() {
                let _ = sys::cuStreamDestroy_v2(self.stream);
            }
        }
    }
}
