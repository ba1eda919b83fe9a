//! Launches, and what a kernel may ask for in one.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};

use super::error::{
    fail, Status, INVALID_DEVICE_FUNCTION, INVALID_VALUE, LAUNCH_FAILURE, NOT_SUPPORTED, SUCCESS,
};
use crate::registry::{self, Refusal, Shape};
use crate::settings;

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
const COOPERATIVE: c_int = 2;
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
    static PUSHED: RefCell<Vec<(Dim3, Dim3, usize, usize)>> = const { RefCell::new(Vec::new()) };
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

const BLOCKS_TAKE_TURNS: &str =
    "a cooperative launch, whose blocks wait for each other; here they take turns";

#[no_mangle]
pub extern "C" fn cudaLaunchCooperativeKernel(
    _: *const c_void,
    _: Dim3,
    _: Dim3,
    _: *const *const c_void,
    _: usize,
    _: *mut c_void,
) -> Status {
    fail(NOT_SUPPORTED, BLOCKS_TAKE_TURNS)
}

/// # Safety
///
/// The caller's struct, with as many attributes as it says.
unsafe fn parts_of<'a>(config: *const Config) -> (&'a Config, &'a [Attribute]) {
    // SAFETY: as the caller's.
    unsafe {
        let config = &*config;
        let attributes = if config.count == 0 {
            &[][..]
        } else {
            std::slice::from_raw_parts(config.attributes, config.count as usize)
        };
        (config, attributes)
    }
}

fn cluster_of(attributes: &[Attribute]) -> [u32; 3] {
    let found = attributes.iter().rfind(|one| one.id == CLUSTER_DIMENSION);
    found.map_or([1; 3], |one| [one.value[0], one.value[1], one.value[2]])
}

#[no_mangle]
pub unsafe extern "C" fn cudaLaunchKernelExC(
    config: *const Config,
    host: *const c_void,
    arguments: *const *const c_void,
) -> Status {
    // SAFETY: as the caller's.
    let (config, attributes) = unsafe { parts_of(config) };
    let cluster = cluster_of(attributes);
    let mut overlaps_previous = false;
    for attribute in attributes {
        match attribute.id {
            CLUSTER_DIMENSION => {}
            COOPERATIVE if attribute.value[0] == 0 => {}
            COOPERATIVE => return fail(NOT_SUPPORTED, BLOCKS_TAKE_TURNS),
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
        (NON_PORTABLE_CLUSTER, Ok(allowed)) => {
            if registry::allow_large_clusters(host as usize, allowed != 0) {
                return SUCCESS;
            }
            fail(INVALID_DEVICE_FUNCTION, "a function that is not a kernel")
        }
        (PREFERRED_CARVEOUT, _) => SUCCESS,
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
    let Some(threads) = usize::try_from(threads).ok().filter(|count| *count > 0) else {
        return fail(INVALID_VALUE, "blocks without threads");
    };
    // SAFETY: the caller's variable.
    unsafe { *blocks = resident_blocks(threads, shared) as c_int };
    SUCCESS
}

/// Blocks that an SM holds.
fn resident_blocks(threads: usize, shared: usize) -> usize {
    const MOST_THREADS: usize = 2048;
    const MOST_BLOCKS: usize = 32;
    // The system keeps a kilobyte of each block's.
    const KEPT: usize = 1024;
    let by_shared = (machine::MOST_SHARED as usize + KEPT) / (shared + KEPT);
    MOST_BLOCKS.min(MOST_THREADS / threads).min(by_shared)
}

/// By groups of 18 SMs, which no cluster leaves. At least one: here a cluster runs on however few SMs there are.
#[no_mangle]
pub unsafe extern "C" fn cudaOccupancyMaxActiveClusters(
    clusters: *mut c_int,
    host: *const c_void,
    config: *const Config,
) -> Status {
    const GROUP: usize = 18;
    // SAFETY: as the caller's.
    let (config, attributes) = unsafe { parts_of(config) };
    let Some(most) = registry::most_cluster_blocks(host as usize) else {
        return fail(INVALID_DEVICE_FUNCTION, "a function that is not a kernel");
    };
    let product = |axes: [u32; 3]| axes.iter().map(|size| *size as usize).product::<usize>();
    let (threads, size) = (
        product(config.block.axes()),
        product(cluster_of(attributes)),
    );
    if threads == 0 || size == 0 || size > most as usize {
        return fail(
            INVALID_VALUE,
            &format!("clusters of {size} blocks of {threads} threads; the kernel allows {most}"),
        );
    }
    let each = resident_blocks(threads, config.dynamic_shared_bytes);
    let sms = settings::get().multiprocessors as usize;
    let of = |group: usize| group * each / size;
    let count = (sms / GROUP * of(GROUP) + of(sms % GROUP)).max(each.min(1));
    // SAFETY: the caller's variable.
    unsafe { *clusters = count as c_int };
    SUCCESS
}
