//! Rust that panics in a function that C calls.

#[rustfmt::skip] // Beside it where it is built.
mod contender;

use std::ffi::{c_char, c_void};

use contender::{Description, Problem, ABI_VERSION};

unsafe extern "C" fn bind(_: *const Problem, _: *mut c_char, _: usize) -> *mut c_void {
    std::ptr::dangling_mut::<u64>().cast()
}

unsafe extern "C" fn enqueue(_: *mut c_void, _: *mut c_void) -> i32 {
    let sizes: Vec<i32> = Vec::new();
    panic!("{} sizes are too few", sizes.len());
}

static LIBRARY: Description = Description {
    abi_version: ABI_VERSION,
    struct_bytes: size_of::<Description>() as u32,
    name: c"panics".as_ptr(),
    version: c"1".as_ptr(),
    ops: std::ptr::null(),
    supports: None,
    bind: Some(bind),
    enqueue: Some(enqueue),
    facts: None,
    destroy: None,
};

#[no_mangle]
pub extern "C" fn contender_library() -> *const Description {
    &LIBRARY
}
