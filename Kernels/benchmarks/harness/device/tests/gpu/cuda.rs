//! The CUDA device against the CPU device, function by function, on a real GPU.
//!
//! Without a GPU, or without CUDA in the build, it says so and passes.

#[cfg(feature = "cuda")]
mod memory;
#[cfg(feature = "cuda")]
mod sampling;

/// Runs `test` with both devices, or says why not. Only absence skips; any other error fails.
#[cfg(feature = "cuda")]
fn with_gpu(test: impl FnOnce(&device::CudaDevice, &device::CpuDevice)) {
    use device::{CpuDevice, CudaDevice, DeviceError};

    // One test at a time: they measure, and they share one GPU.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match CudaDevice::open() {
        Ok(cuda) => test(&cuda, &CpuDevice::open()),
        Err(absent @ DeviceError::Unavailable { .. }) => workspace::say!("SKIPPED: {absent}"),
        Err(error) => panic!("{error}"),
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn skipped_without_cuda() {
    workspace::say!("SKIPPED: built without CUDA (arch none)");
}
