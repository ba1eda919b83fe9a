//! A kernel on the device.

use std::ffi::{c_void, CString};
use std::ptr;

use cudarc::driver::sys;

use crate::{Archive, Argument, Kernel, TritonError};

fn check(call: &'static str, status: sys::CUresult) -> Result<(), TritonError> {
    status.result().map_err(|error| {
        let name = error
            .error_name()
            .map_or("?".into(), |name| name.to_string_lossy());
        TritonError::Driver {
            call,
            status: name.into_owned(),
        }
    })
}

/// Belongs to the context that was current when it was loaded; unloaded on drop.
pub struct Loaded {
    kernel: Kernel,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl Loaded {
    /// Loads a kernel's code into the current context.
    pub fn new(archive: &Archive, kernel: &Kernel) -> Result<Self, TritonError> {
        let symbol = CString::new(kernel.symbol.as_str())
            .map_err(|_| TritonError::Archive(format!("{} has no symbol", kernel.name)))?;
        let mut loaded = Self {
            kernel: kernel.clone(),
            module: ptr::null_mut(),
            function: ptr::null_mut(),
        };
        let cubin = archive.code(kernel).as_ptr().cast::<c_void>();
        // SAFETY: the cubin is complete and lives as long as the program; the symbol ends with a nul;
        // results go to fields that outlive the calls.
        unsafe {
            check(
                "cuModuleLoadData",
                sys::cuModuleLoadData(&mut loaded.module, cubin),
            )?;
            check(
                "cuModuleGetFunction",
                sys::cuModuleGetFunction(&mut loaded.function, loaded.module, symbol.as_ptr()),
            )?;
            check(
                "cuFuncSetAttribute",
                sys::cuFuncSetAttribute(
                    loaded.function,
                    sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    kernel.shared_bytes as i32,
                ),
            )?;
        }
        Ok(loaded)
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Enqueues one launch.
    pub fn launch(
        &self,
        [x, y, z]: [u32; 3],
        arguments: &[Argument],
        stream: usize,
    ) -> Result<(), TritonError> {
        let mut words = self.kernel.words(arguments)?;
        let mut addresses: Vec<*mut c_void> = words
            .iter_mut()
            .map(|word| ptr::from_mut(word).cast())
            .collect();
        // SAFETY: the function is loaded; every parameter has a word that is as large as it, checked
        // against its type, and the words outlive the call; the caller's stream is a CUstream.
        let status = unsafe {
            sys::cuLaunchKernel(
                self.function,
                x,
                y,
                z,
                self.kernel.threads,
                1,
                1,
                self.kernel.shared_bytes,
                stream as sys::CUstream,
                addresses.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", status)
    }
}

/// The fastest of several equivalent launches on `stream`, and its time in us: each runs once as a
/// warm-up, then three times between events, of which the shortest counts. Waits for the stream.
pub fn fastest(
    candidates: Vec<Loaded>,
    grid: [u32; 3],
    arguments: &[Argument],
    stream: usize,
) -> Result<Option<(Loaded, f32)>, TritonError> {
    const RUNS: usize = 3;
    let events = [Event::new()?, Event::new()?];
    let mut best: Option<(Loaded, f32)> = None;
    for candidate in candidates {
        candidate.launch(grid, arguments, stream)?;
        let mut shortest = f32::INFINITY;
        for _ in 0..RUNS {
            events[0].record(stream)?;
            candidate.launch(grid, arguments, stream)?;
            events[1].record(stream)?;
            shortest = shortest.min(events[1].us_since(&events[0])?);
        }
        if best.as_ref().is_none_or(|(_, time)| shortest < *time) {
            best = Some((candidate, shortest));
        }
    }
    Ok(best)
}

struct Event(sys::CUevent);

impl Event {
    fn new() -> Result<Self, TritonError> {
        let mut event = ptr::null_mut();
        // SAFETY: the result goes to a variable that outlives the call.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&mut event, 0)
        })?;
        Ok(Self(event))
    }

    fn record(&self, stream: usize) -> Result<(), TritonError> {
        // SAFETY: the event is live; the caller's stream is a CUstream.
        let status = unsafe { sys::cuEventRecord(self.0, stream as sys::CUstream) };
        check("cuEventRecord", status)
    }

    /// Waits for this event.
    fn us_since(&self, earlier: &Self) -> Result<f32, TritonError> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are live; the result goes to a variable that outlives the call.
        unsafe {
            check("cuEventSynchronize", sys::cuEventSynchronize(self.0))?;
            let status = sys::cuEventElapsedTime_v2(&mut milliseconds, earlier.0, self.0);
            check("cuEventElapsedTime", status)?;
        }
        Ok(1e3 * milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed once. A failure means that the context is gone.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if !self.module.is_null() {
            // SAFETY: loaded by `new`, unloaded once. A failure means that the context is gone, and
            // with it the module.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}
