//! What went wrong last, as a status and as a sentence.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CString};

pub type Status = c_int;
pub const SUCCESS: Status = 0;
pub const INVALID_VALUE: Status = 1;
pub const MEMORY_ALLOCATION: Status = 2;
pub const INVALID_DEVICE_FUNCTION: Status = 98;
pub const INVALID_DEVICE: Status = 101;
pub const LAUNCH_FAILURE: Status = 719;
pub const NOT_SUPPORTED: Status = 801;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
    static LAST: RefCell<Status> = const { RefCell::new(SUCCESS) };
}

pub fn fail(status: Status, message: &str) -> Status {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with(|slot| *slot.borrow_mut() = text);
    LAST.with(|slot| *slot.borrow_mut() = status);
    status
}

#[no_mangle]
pub extern "C" fn cudaGetLastError() -> Status {
    LAST.with(|slot| slot.replace(SUCCESS))
}

#[no_mangle]
pub extern "C" fn cudaPeekAtLastError() -> Status {
    LAST.with(|slot| *slot.borrow())
}

#[no_mangle]
pub extern "C" fn cudaGetErrorName(status: Status) -> *const c_char {
    match status {
        SUCCESS => c"cudaSuccess",
        INVALID_VALUE => c"cudaErrorInvalidValue",
        MEMORY_ALLOCATION => c"cudaErrorMemoryAllocation",
        INVALID_DEVICE_FUNCTION => c"cudaErrorInvalidDeviceFunction",
        INVALID_DEVICE => c"cudaErrorInvalidDevice",
        LAUNCH_FAILURE => c"cudaErrorLaunchFailure",
        NOT_SUPPORTED => c"cudaErrorNotSupported",
        _ => c"an error of another kind",
    }
    .as_ptr()
}

/// The emulator's own sentence about the last failure of this thread.
#[no_mangle]
pub extern "C" fn cudaGetErrorString(status: Status) -> *const c_char {
    if status == SUCCESS {
        return c"no error".as_ptr();
    }
    MESSAGE.with(|slot| slot.borrow().as_ptr())
}
