//! Memory of the device and the host: allocation, copies, fills.

use std::ffi::{c_int, c_void};

use super::error::{fail, Status, INVALID_VALUE, MEMORY_ALLOCATION, SUCCESS};
use crate::registry;

#[no_mangle]
pub unsafe extern "C" fn cudaMalloc(address: *mut *mut c_void, bytes: usize) -> Status {
    const MOST: usize = 1 << 40;
    if bytes > MOST {
        return fail(MEMORY_ALLOCATION, &format!("no memory for {bytes} bytes"));
    }
    // SAFETY: the caller's variable.
    unsafe { *address = registry::allocate(bytes) as *mut c_void };
    SUCCESS
}

#[no_mangle]
pub extern "C" fn cudaFree(address: *mut c_void) -> Status {
    if address.is_null() || registry::free(address as u64) {
        return SUCCESS;
    }
    fail(INVALID_VALUE, "memory is freed that was not allocated")
}

extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(address: *mut c_void);
}

/// Ordinary memory: there is no device to lock pages for.
#[no_mangle]
pub unsafe extern "C" fn cudaMallocHost(address: *mut *mut c_void, bytes: usize) -> Status {
    // SAFETY: the caller's variable.
    unsafe { *address = malloc(bytes.max(1)) };
    if unsafe { (*address).is_null() } {
        return fail(MEMORY_ALLOCATION, &format!("no memory for {bytes} bytes"));
    }
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaFreeHost(address: *mut c_void) -> Status {
    // SAFETY: the caller got it from cudaMallocHost.
    unsafe { free(address) };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
) -> Status {
    registry::settle();
    const TO_DEVICE: c_int = 1;
    const FROM_DEVICE: c_int = 2;
    const ON_DEVICE: c_int = 3;
    let (to_device, from_device) = (
        matches!(kind, TO_DEVICE | ON_DEVICE),
        matches!(kind, FROM_DEVICE | ON_DEVICE),
    );
    if to_device && !registry::covers(to as u64, bytes as u64)
        || from_device && !registry::covers(from as u64, bytes as u64)
    {
        return fail(
            INVALID_VALUE,
            &format!("a copy of {bytes} bytes outside of what was allocated"),
        );
    }
    // SAFETY: device memory was checked; the host's is the caller's.
    unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes) };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    _: *mut c_void,
) -> Status {
    // SAFETY: as the caller's.
    unsafe { cudaMemcpy(to, from, bytes, kind) }
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemcpy2D(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Status {
    if width > to_pitch || width > from_pitch {
        return fail(
            INVALID_VALUE,
            &format!("rows of {width} bytes, {to_pitch} and {from_pitch} apart"),
        );
    }
    for row in 0..height {
        let to = to.wrapping_byte_add(row * to_pitch);
        let from = from.wrapping_byte_add(row * from_pitch);
        // SAFETY: as the caller's.
        let status = unsafe { cudaMemcpy(to, from, width, kind) };
        if status != SUCCESS {
            return status;
        }
    }
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemset(to: *mut c_void, value: c_int, bytes: usize) -> Status {
    registry::settle();
    if !registry::covers(to as u64, bytes as u64) {
        return fail(
            INVALID_VALUE,
            &format!("{bytes} bytes are set outside of what was allocated"),
        );
    }
    // SAFETY: the range was checked.
    unsafe { to.cast::<u8>().write_bytes(value as u8, bytes) };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemsetAsync(
    to: *mut c_void,
    value: c_int,
    bytes: usize,
    _: *mut c_void,
) -> Status {
    // SAFETY: as the caller's.
    unsafe { cudaMemset(to, value, bytes) }
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemcpyToSymbol(
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    _: c_int,
) -> Status {
    match part_of_variable(symbol, bytes, offset) {
        Ok(address) => {
            // SAFETY: the range lies in the variable.
            unsafe { std::ptr::copy(from.cast::<u8>(), address, bytes) };
            SUCCESS
        }
        Err(message) => fail(INVALID_VALUE, &message),
    }
}

#[no_mangle]
pub unsafe extern "C" fn cudaMemcpyFromSymbol(
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    _: c_int,
) -> Status {
    registry::settle();
    match part_of_variable(symbol, bytes, offset) {
        Ok(address) => {
            // SAFETY: the range lies in the variable; the host's memory is the caller's.
            unsafe { std::ptr::copy(address, to.cast::<u8>(), bytes) };
            SUCCESS
        }
        Err(message) => fail(INVALID_VALUE, &message),
    }
}

fn part_of_variable(symbol: *const c_void, bytes: usize, offset: usize) -> Result<*mut u8, String> {
    let (address, size) = registry::variable(symbol as usize)?;
    if offset as u64 + bytes as u64 > size {
        return Err(format!("{bytes} bytes at {offset} of a variable of {size}"));
    }
    Ok((address + offset as u64) as *mut u8)
}
