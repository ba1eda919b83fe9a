//! Device memory that belongs to a plan.

use cudarc::driver::result;
use cudarc::driver::sys::CUdeviceptr;

use crate::Error;

/// Freed on drop.
pub(crate) struct Memory {
    address: CUdeviceptr,
}

impl Memory {
    /// In the current context; at least one byte, so that there is an address.
    pub(crate) fn new(bytes: usize) -> Result<Self, Error> {
        // SAFETY: only allocates.
        let address = unsafe { result::malloc_sync(bytes.max(1)) }.map_err(cuda("cuMemAlloc"))?;
        Ok(Self { address })
    }

    pub(crate) fn of(values: &[i32]) -> Result<Self, Error> {
        let memory = Self::new(std::mem::size_of_val(values))?;
        // SAFETY: the memory holds as many bytes as the values.
        unsafe { result::memcpy_htod_sync(memory.address, values) }
            .map_err(cuda("cuMemcpyHtoD"))?;
        Ok(memory)
    }

    pub(crate) fn address(&self) -> usize {
        self.address as usize
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated here, and no plan that uses it is left. A failure means that the
        // context is gone, and with it the memory.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

fn cuda(what: &'static str) -> impl Fn(result::DriverError) -> Error {
    move |error| Error::Cuda {
        what,
        message: error.to_string(),
    }
}
