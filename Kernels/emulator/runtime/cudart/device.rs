//! The one device, and the driver's entry points.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

use super::error::{fail, Status, INVALID_DEVICE, INVALID_VALUE, SUCCESS};
use crate::{registry, settings, tensor};

#[no_mangle]
pub unsafe extern "C" fn cudaGetDevice(device: *mut c_int) -> Status {
    // SAFETY: the caller's variable.
    unsafe { *device = 0 };
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaSetDevice(device: c_int) -> Status {
    if device == 0 {
        SUCCESS
    } else {
        fail(INVALID_DEVICE, "the emulator is device 0")
    }
}

#[no_mangle]
pub unsafe extern "C" fn cudaGetDeviceCount(count: *mut c_int) -> Status {
    // SAFETY: the caller's variable.
    unsafe { *count = 1 };
    SUCCESS
}

/// That of a toolkit new enough for every PTX here.
#[no_mangle]
pub unsafe extern "C" fn cudaDriverGetVersion(version: *mut c_int) -> Status {
    // SAFETY: the caller's variable.
    unsafe { *version = 13_000 };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> Status {
    if device != 0 {
        return fail(INVALID_DEVICE, "the emulator is device 0");
    }
    let capability = registry::compute_capability().unwrap_or(0) as c_int;
    let found = match attribute {
        1 => 1024,
        5 => c_int::MAX,
        6 | 7 => 65535,
        8 => 48 << 10,
        10 => 32,
        16 => settings::get().multiprocessors as c_int,
        38 => 50 << 20,
        39 => 2048,
        75 => capability / 10,
        76 => capability % 10,
        81 => machine::MOST_SHARED as c_int + 1024,
        97 => machine::MOST_SHARED as c_int,
        106 => 32,
        111 => 1024,
        other => {
            return fail(
                INVALID_VALUE,
                &format!("device attribute {other} is not known to the emulator"),
            )
        }
    };
    // SAFETY: the caller's variable.
    unsafe { *value = found };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaGetDriverEntryPointByVersion(
    name: *const c_char,
    function: *mut *mut c_void,
    _: c_uint,
    _: u64,
    result: *mut c_int,
) -> Status {
    const NOT_FOUND: c_int = 1;
    // SAFETY: the caller's string and variables.
    unsafe {
        let found = CStr::from_ptr(name) == c"cuTensorMapEncodeTiled";
        *function = if found {
            tensor::encode_tiled as *mut c_void
        } else {
            std::ptr::null_mut()
        };
        if !result.is_null() {
            *result = if found { 0 } else { NOT_FOUND };
        }
    }
    SUCCESS
}
