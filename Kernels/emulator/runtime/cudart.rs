//! The functions of the CUDA runtime that host code of kernels calls, and those that nvcc's own code calls.
//!
//! Each takes what its namesake takes; pointers are trusted as far as the namesake trusts them.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};

use crate::registry::{self, Refusal, Shape};
use crate::{fatbin, settings, tensor};

type Status = c_int;
const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
const MEMORY_ALLOCATION: Status = 2;
const INVALID_DEVICE_FUNCTION: Status = 98;
const INVALID_DEVICE: Status = 101;
const LAUNCH_FAILURE: Status = 719;
const NOT_SUPPORTED: Status = 801;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

impl Dim3 {
    fn axes(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

#[repr(C)]
pub struct Attribute {
    id: c_int,
    padding: c_int,
    /// The value's first words; clusters have three.
    value: [c_uint; 16],
}
const CLUSTER_DIMENSION: c_int = 4;
const STREAM_SERIALIZATION: c_int = 6;

#[repr(C)]
pub struct Config {
    grid: Dim3,
    block: Dim3,
    dynamic_shared_bytes: usize,
    stream: *mut c_void,
    attributes: *const Attribute,
    count: c_uint,
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
    static LAST: RefCell<Status> = const { RefCell::new(SUCCESS) };
    static PUSHED: RefCell<Vec<(Dim3, Dim3, usize, usize)>> = const { RefCell::new(Vec::new()) };
}

fn fail(status: Status, message: &str) -> Status {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with(|slot| *slot.borrow_mut() = text);
    LAST.with(|slot| *slot.borrow_mut() = status);
    status
}

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
pub extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: *mut c_void,
) -> c_uint {
    PUSHED.with(|stack| {
        stack
            .borrow_mut()
            .push((grid, block, shared, stream as usize))
    });
    0
}

#[no_mangle]
pub unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared: *mut usize,
    stream: *mut *mut c_void,
) -> Status {
    let Some(top) = PUSHED.with(|stack| stack.borrow_mut().pop()) else {
        return fail(INVALID_VALUE, "a launch without a configuration");
    };
    // SAFETY: nvcc's code passes four variables of its own.
    unsafe { (*grid, *block, *shared, *stream) = (top.0, top.1, top.2, top.3 as *mut c_void) };
    SUCCESS
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

unsafe fn run(host: *const c_void, shape: &Shape, arguments: *const *const c_void) -> Status {
    // SAFETY: the stub of the kernel made the arguments.
    match unsafe { registry::launch(host as usize, shape, arguments) } {
        Ok(()) => SUCCESS,
        Err(Refusal::UnknownKernel) => {
            fail(INVALID_DEVICE_FUNCTION, "a function that is not a kernel")
        }
        Err(Refusal::Invalid(message)) => fail(INVALID_VALUE, &message),
        Err(Refusal::Failed(message)) => fail(LAUNCH_FAILURE, &message),
    }
}

#[no_mangle]
pub unsafe extern "C" fn cudaLaunchKernel(
    host: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared: usize,
    _: *mut c_void,
) -> Status {
    let Ok(dynamic_shared_bytes) = u32::try_from(shared) else {
        return fail(INVALID_VALUE, "too much shared memory");
    };
    let shape = Shape {
        grid: grid.axes(),
        block: block.axes(),
        cluster: [1; 3],
        dynamic_shared_bytes,
        overlaps_previous: false,
    };
    // SAFETY: as the caller's.
    unsafe { run(host, &shape, arguments) }
}

#[no_mangle]
pub unsafe extern "C" fn __cudaLaunchKernel(
    host: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared: usize,
    stream: *mut c_void,
) -> Status {
    // SAFETY: as the caller's.
    unsafe { cudaLaunchKernel(host, grid, block, arguments, shared, stream) }
}

#[no_mangle]
pub extern "C" fn cudaLaunchCooperativeKernel(
    _: *const c_void,
    _: Dim3,
    _: Dim3,
    _: *const *const c_void,
    _: usize,
    _: *mut c_void,
) -> Status {
    let message = "a cooperative launch, whose blocks wait for each other; here they take turns";
    fail(NOT_SUPPORTED, message)
}

#[no_mangle]
pub unsafe extern "C" fn cudaLaunchKernelExC(
    config: *const Config,
    host: *const c_void,
    arguments: *const *const c_void,
) -> Status {
    // SAFETY: the caller's struct, with as many attributes as it says.
    let (config, attributes) = unsafe {
        let config = &*config;
        let attributes = if config.count == 0 {
            &[][..]
        } else {
            std::slice::from_raw_parts(config.attributes, config.count as usize)
        };
        (config, attributes)
    };
    let mut cluster = [1; 3];
    let mut overlaps_previous = false;
    for attribute in attributes {
        match attribute.id {
            CLUSTER_DIMENSION => {
                cluster = [attribute.value[0], attribute.value[1], attribute.value[2]]
            }
            // Kernels run one after the other here; the race detector knows better.
            STREAM_SERIALIZATION => overlaps_previous = attribute.value[0] != 0,
            other => {
                return fail(
                    INVALID_VALUE,
                    &format!("launch attribute {other} is not known to the emulator"),
                )
            }
        }
        let _ = attribute.padding;
    }
    let _ = config.stream;
    let Ok(dynamic_shared_bytes) = u32::try_from(config.dynamic_shared_bytes) else {
        return fail(INVALID_VALUE, "too much shared memory");
    };
    let shape = Shape {
        grid: config.grid.axes(),
        block: config.block.axes(),
        cluster,
        dynamic_shared_bytes,
        overlaps_previous,
    };
    // SAFETY: as the caller's.
    unsafe { run(host, &shape, arguments) }
}

#[no_mangle]
pub extern "C" fn cudaFuncSetAttribute(
    host: *const c_void,
    attribute: c_int,
    value: c_int,
) -> Status {
    const MOST_DYNAMIC_SHARED: c_int = 8;
    const PREFERRED_CARVEOUT: c_int = 9;
    const NON_PORTABLE_CLUSTER: c_int = 14;
    match (attribute, u32::try_from(value)) {
        (MOST_DYNAMIC_SHARED, Ok(bytes)) if bytes <= machine::MOST_SHARED => {
            if registry::allow_shared(host as usize, bytes) {
                return SUCCESS;
            }
            fail(INVALID_DEVICE_FUNCTION, "a function that is not a kernel")
        }
        (PREFERRED_CARVEOUT | NON_PORTABLE_CLUSTER, _) => SUCCESS,
        _ => fail(
            INVALID_VALUE,
            &format!("function attribute {attribute} of {value}"),
        ),
    }
}

/// By threads and shared memory; registers, which PTX does not count, may allow fewer on hardware.
#[no_mangle]
pub unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    _: *const c_void,
    threads: c_int,
    shared: usize,
    _: c_uint,
) -> Status {
    const MOST_THREADS: usize = 2048;
    const MOST_BLOCKS: usize = 32;
    // The system keeps a kilobyte of each block's.
    const KEPT: usize = 1024;
    let Some(threads) = usize::try_from(threads).ok().filter(|count| *count > 0) else {
        return fail(INVALID_VALUE, "blocks without threads");
    };
    let by_shared = (machine::MOST_SHARED as usize + KEPT) / (shared + KEPT);
    let most = MOST_BLOCKS.min(MOST_THREADS / threads).min(by_shared);
    // SAFETY: the caller's variable.
    unsafe { *blocks = most as c_int };
    SUCCESS
}

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
    match registry::variable(symbol as usize) {
        Ok((address, size)) if offset as u64 + bytes as u64 <= size => {
            // SAFETY: the range lies in the variable.
            unsafe {
                std::ptr::copy(
                    from.cast::<u8>(),
                    (address + offset as u64) as *mut u8,
                    bytes,
                )
            };
            SUCCESS
        }
        Ok((_, size)) => fail(
            INVALID_VALUE,
            &format!("{bytes} bytes at {offset} of a variable of {size}"),
        ),
        Err(message) => fail(INVALID_VALUE, &message),
    }
}

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
