//! Streams, and waiting for them.

use std::ffi::c_void;

use super::error::{Status, NOT_SUPPORTED, SUCCESS};
use crate::registry;

#[no_mangle]
pub extern "C" fn cudaDeviceSynchronize() -> Status {
    registry::settle();
    SUCCESS
}

/// Work is done when it is asked for, so that all streams are one; no address that anybody uses.
#[no_mangle]
pub unsafe extern "C" fn cudaStreamCreateWithFlags(stream: *mut *mut c_void, _: u32) -> Status {
    // SAFETY: the caller's variable.
    unsafe { *stream = std::ptr::dangling_mut::<u64>().cast() };
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaStreamDestroy(_: *mut c_void) -> Status {
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaStreamSynchronize(_: *mut c_void) -> Status {
    registry::settle();
    SUCCESS
}

/// Work is done when it is asked for, so that an event has nothing to remember.
#[no_mangle]
pub unsafe extern "C" fn cudaEventCreate(event: *mut *mut c_void) -> Status {
    // SAFETY: the caller's variable.
    unsafe { *event = std::ptr::dangling_mut::<u64>().cast() };
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaEventDestroy(_: *mut c_void) -> Status {
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaEventRecord(_: *mut c_void, _: *mut c_void) -> Status {
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaEventSynchronize(_: *mut c_void) -> Status {
    registry::settle();
    SUCCESS
}

/// There is no clock.
#[no_mangle]
pub extern "C" fn cudaEventElapsedTime(_: *mut f32, _: *mut c_void, _: *mut c_void) -> Status {
    NOT_SUPPORTED
}
