//! What nvcc's code tells the runtime before `main`: the kernels and variables of each object.

use std::ffi::{c_char, c_int, c_void, CStr};

use super::error::{Status, SUCCESS};
use crate::{fatbin, registry};

#[no_mangle]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    // SAFETY: nvcc's code passes its own struct.
    let unit = registry::add_unit(unsafe { fatbin::read(wrapper) });
    // The handle of a unit lives as long as the process.
    Box::into_raw(Box::new(unit as *mut c_void))
}

#[no_mangle]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_: *mut *mut c_void) {}

#[no_mangle]
pub extern "C" fn __cudaUnregisterFatBinary(_: *mut *mut c_void) {}

#[no_mangle]
pub extern "C" fn __cudaInitModule(_: *mut *mut c_void) -> c_char {
    1
}

#[no_mangle]
pub unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    host: *const c_char,
    _: *mut c_char,
    name: *const c_char,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_int,
) {
    // SAFETY: the handle is ours and the name a C string of the object.
    let (unit, name) = unsafe { (*handle as usize, CStr::from_ptr(name)) };
    registry::add_kernel(unit, host as usize, &name.to_string_lossy());
}

#[no_mangle]
pub unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    host: *const c_char,
    _: *mut c_char,
    name: *const c_char,
    _: c_int,
    _: usize,
    _: c_int,
    _: c_int,
) {
    // SAFETY: as above.
    let (unit, name) = unsafe { (*handle as usize, CStr::from_ptr(name)) };
    registry::add_variable(unit, host as usize, &name.to_string_lossy());
}

#[no_mangle]
pub unsafe extern "C" fn __cudaGetKernel(
    kernel: *mut *const c_void,
    host: *const c_void,
) -> Status {
    // SAFETY: nvcc's code passes a variable of its own.
    unsafe { *kernel = host };
    SUCCESS
}
