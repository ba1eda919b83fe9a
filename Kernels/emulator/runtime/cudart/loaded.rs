//! Libraries that host code loads by the runtime's own functions: PTX, as text. Machine code is refused.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

use super::error::{fail, Status, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use crate::registry;

/// What a handle points to.
struct Loaded {
    /// The address of each takes the place of a host function's.
    kernels: Box<[u8]>,
}

fn address(kernel: &u8) -> usize {
    std::ptr::from_ref(kernel) as usize
}

#[no_mangle]
pub unsafe extern "C" fn cudaLibraryLoadData(
    library: *mut *mut c_void,
    code: *const c_void,
    _: *mut c_int,
    _: *mut *mut c_void,
    _: c_uint,
    _: *mut c_int,
    _: *mut *mut c_void,
    _: c_uint,
) -> Status {
    // SAFETY: the caller's code: text that ends with a nul, or an image, whose header has one.
    let text = unsafe { CStr::from_ptr(code.cast::<c_char>()) };
    let Some(text) = text.to_str().ok().filter(|text| text.contains(".version")) else {
        return fail(NOT_SUPPORTED, "a library of machine code without its PTX");
    };
    let unit = registry::unit_of(text);
    let names = match registry::entries(unit) {
        Ok(names) => names,
        Err(message) => return fail(INVALID_VALUE, &message),
    };
    let kernels = vec![0; names.len()].into_boxed_slice();
    for (kernel, name) in kernels.iter().zip(&names) {
        registry::add_kernel(unit, address(kernel), name);
    }
    // SAFETY: the caller's variable; cudaLibraryUnload takes the handle back.
    unsafe { *library = Box::into_raw(Box::new(Loaded { kernels })).cast() };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaLibraryGetKernelCount(
    count: *mut c_uint,
    library: *mut c_void,
) -> Status {
    // SAFETY: a handle of ours.
    let loaded = unsafe { &*library.cast::<Loaded>() };
    // SAFETY: the caller's variable.
    unsafe { *count = loaded.kernels.len() as c_uint };
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaLibraryEnumerateKernels(
    kernels: *mut *const c_void,
    count: c_uint,
    library: *mut c_void,
) -> Status {
    // SAFETY: a handle of ours.
    let loaded = unsafe { &*library.cast::<Loaded>() };
    for (place, kernel) in loaded.kernels.iter().take(count as usize).enumerate() {
        // SAFETY: the caller's array of so many.
        unsafe { *kernels.add(place) = address(kernel) as *const c_void };
    }
    SUCCESS
}

#[no_mangle]
pub unsafe extern "C" fn cudaLibraryUnload(library: *mut c_void) -> Status {
    // SAFETY: a handle of ours, which the caller gives up.
    let loaded = unsafe { Box::from_raw(library.cast::<Loaded>()) };
    let kernels = loaded.kernels.iter();
    kernels.for_each(|kernel| registry::remove_kernel(address(kernel)));
    SUCCESS
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::*;

    const TWO: &CStr =
        c".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry one() { ret; }\n\
        .func helper() { ret; }\n.visible .entry two() { ret; }";

    fn load(code: &CStr) -> Result<*mut c_void, Status> {
        let mut library = null_mut();
        let [no_options, no_values] = [null_mut(); 2];
        let code = code.as_ptr().cast();
        // SAFETY: a variable and a text of ours, and no options.
        let status = unsafe {
            let [none, nothing] = [null_mut(); 2];
            cudaLibraryLoadData(
                &mut library,
                code,
                no_options,
                none,
                0,
                no_values,
                nothing,
                0,
            )
        };
        (status == SUCCESS).then_some(library).ok_or(status)
    }

    #[test]
    fn a_library_has_the_kernels_of_its_text_until_it_is_unloaded() {
        let library = load(TWO).unwrap();
        let (mut count, mut kernels) = (0, [null(); 2]);
        // SAFETY: a handle and variables of ours.
        unsafe {
            assert_eq!(cudaLibraryGetKernelCount(&mut count, library), SUCCESS);
            let status = cudaLibraryEnumerateKernels(kernels.as_mut_ptr(), 2, library);
            assert_eq!((count, status), (2, SUCCESS));
        }
        let known = |kernel: &*const c_void| registry::program_of(*kernel as usize).is_some();
        assert!(kernels.iter().all(known) && kernels[0] != kernels[1]);
        // SAFETY: nobody uses it any more.
        assert_eq!(unsafe { cudaLibraryUnload(library) }, SUCCESS);
        assert!(!kernels.iter().any(known));
    }

    #[test]
    fn machine_code_and_broken_text_are_refused() {
        assert_eq!(load(c"\x7fELF\x02\x01\x01"), Err(NOT_SUPPORTED));
        assert_eq!(
            load(c".version 9.0\n.target sm_90a\n.entry {"),
            Err(INVALID_VALUE)
        );
    }
}
