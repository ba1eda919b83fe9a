//! Kernels that host code loads by itself, as launchers made by CuTe DSL do: by its runtime's functions, over ours.
//! What they load is machine code; its PTX has to be given apart.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

use super::device::{cudaDeviceGetAttribute, cudaGetDevice};
use super::error::{fail, Status, INVALID_DEVICE_FUNCTION, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use super::launch::{cudaFuncSetAttribute, cudaLaunchKernelExC, Config};
use crate::registry;

thread_local! {
    static NEXT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The PTX of the next library that this thread loads.
#[no_mangle]
pub unsafe extern "C" fn interpreter_next_library(text: *const c_char) {
    // SAFETY: the caller's C string.
    let text = unsafe { CStr::from_ptr(text) };
    NEXT.with(|next| *next.borrow_mut() = Some(text.to_string_lossy().into_owned()));
}

#[no_mangle]
pub unsafe extern "C" fn _cudaLibraryLoadData(
    library: *mut *mut c_void,
    _: *const c_void,
    _: *mut c_int,
    _: *mut *mut c_void,
    _: c_uint,
    _: *mut c_int,
    _: *mut *mut c_void,
    _: c_uint,
) -> Status {
    let Some(text) = NEXT.with(|next| next.borrow_mut().take()) else {
        return fail(NOT_SUPPORTED, "a library of machine code without its PTX");
    };
    let unit = registry::unit_of(&text);
    // SAFETY: the caller's variable; the handle lives as long as the process.
    unsafe { *library = Box::into_raw(Box::new(unit)).cast() };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn _cudaLibraryGetKernel(
    kernel: *mut *const c_void,
    library: *mut c_void,
    name: *const c_char,
) -> Status {
    // SAFETY: a handle of ours, and the caller's C string.
    let (unit, name) = unsafe { (*library.cast::<usize>(), CStr::from_ptr(name)) };
    let name = name.to_string_lossy();
    if let Err(message) = registry::program(unit, &name) {
        return fail(INVALID_DEVICE_FUNCTION, &message);
    }
    // Takes the place of a host function's address, as long as the process lives.
    let host: *const u8 = Box::leak(Box::new(0));
    registry::add_kernel(unit, host as usize, &name);
    // SAFETY: the caller's variable.
    unsafe { *kernel = host.cast() };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn _cuKernelGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    kernel: *const c_void,
    _: c_int,
) -> Status {
    const STATIC_SHARED: c_int = 1;
    match (attribute, registry::program_of(kernel as usize)) {
        (STATIC_SHARED, Some(program)) => {
            // SAFETY: the caller's variable.
            unsafe { *value = program.static_shared_bytes() as c_int };
            SUCCESS
        }
        (_, None) => fail(INVALID_DEVICE_FUNCTION, "a function that is not a kernel"),
        _ => {
            let message = format!("kernel attribute {attribute} is not known to the emulator");
            fail(INVALID_VALUE, &message)
        }
    }
}

#[no_mangle]
pub extern "C" fn _cudaFuncSetAttribute(
    kernel: *const c_void,
    attribute: c_int,
    value: c_int,
) -> Status {
    cudaFuncSetAttribute(kernel, attribute, value)
}

#[no_mangle]
pub extern "C" fn _cudaKernelSetAttributeForDevice(
    kernel: *const c_void,
    attribute: c_int,
    value: c_int,
    _: c_int,
) -> Status {
    cudaFuncSetAttribute(kernel, attribute, value)
}

#[no_mangle]
pub unsafe extern "C" fn _cudaGetDevice(device: *mut c_int) -> Status {
    // SAFETY: as the caller's.
    unsafe { cudaGetDevice(device) }
}

#[no_mangle]
pub unsafe extern "C" fn _cudaDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> Status {
    // SAFETY: as the caller's.
    unsafe { cudaDeviceGetAttribute(value, attribute, device) }
}

#[no_mangle]
pub unsafe extern "C" fn _cudaLaunchKernelEx(
    config: *const Config,
    kernel: *const c_void,
    arguments: *const *const c_void,
) -> Status {
    // SAFETY: as the caller's.
    unsafe { cudaLaunchKernelExC(config, kernel, arguments) }
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;

    const EMPTY: &CStr =
        c".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry empty() { ret; }";

    fn load() -> Result<*mut c_void, Status> {
        let mut library = null_mut();
        let [options, values] = [null_mut(), null_mut()];
        // SAFETY: a variable of ours, and no options.
        let status = unsafe {
            _cudaLibraryLoadData(
                &mut library,
                null(),
                options,
                null_mut(),
                0,
                values,
                null_mut(),
                0,
            )
        };
        (status == SUCCESS).then_some(library).ok_or(status)
    }

    #[test]
    fn a_library_is_the_text_that_was_given() {
        assert_eq!(load(), Err(NOT_SUPPORTED));
        // SAFETY: a C string.
        unsafe { interpreter_next_library(EMPTY.as_ptr()) };
        let library = load().unwrap();
        // One text serves one library.
        assert_eq!(load(), Err(NOT_SUPPORTED));
        let find = |name: &CStr| {
            let mut kernel = null();
            // SAFETY: a variable of ours, a handle of ours and a C string.
            let status = unsafe { _cudaLibraryGetKernel(&mut kernel, library, name.as_ptr()) };
            (status == SUCCESS).then_some(kernel).ok_or(status)
        };
        assert_eq!(find(c"other"), Err(INVALID_DEVICE_FUNCTION));
        let kernel = find(c"empty").unwrap();
        let mut value = -1;
        // SAFETY: a variable of ours.
        let mut get =
            |attribute| unsafe { _cuKernelGetAttribute(&mut value, attribute, kernel, 0) };
        assert_eq!((get(1), get(77)), (SUCCESS, INVALID_VALUE));
        assert_eq!(value, 0);
    }
}
