//! The same launch on a GPU, so that what the interpreter says can be held against the hardware. It is not timed.

use std::collections::BTreeMap;
use std::ffi::{c_void, CString};
use std::ptr;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdeviceptr};
use machine::Module;

use crate::launch::Description;

fn check<T>(call: &str, result: Result<T, DriverError>) -> Result<T, String> {
    result.map_err(|error| {
        let text = error.error_string();
        let text = text.map_or("?".into(), |text| text.to_string_lossy());
        format!("{call}: {text}")
    })
}

/// Runs a launch of `module`, whose PTX is `text`, on the first GPU; how many values were as expected. What the process
/// takes there it keeps until it ends.
pub fn run(launch: &Description, module: &Module, text: &str) -> Result<usize, String> {
    // SAFETY: only loads libraries. cudarc panics if there is none, so check first.
    if !unsafe { sys::is_culib_present() } {
        return Err(
            "libcuda.so.1 cannot be loaded: install NVIDIA's driver 580 or newer".to_owned(),
        );
    }
    let program = launch.program(module)?;
    let text = CString::new(text).map_err(|_| "the PTX has a zero byte".to_owned())?;
    let name = CString::new(&*program.name).map_err(|_| "no name".to_owned())?;
    check("cuInit", result::init())?;
    let device = check("cuDeviceGet", result::device::get(0))?;
    // SAFETY: the context is current before anything needs it; copies are of the sizes that were allocated.
    let buffers = unsafe {
        let context = check(
            "cuDevicePrimaryCtxRetain",
            result::primary_ctx::retain(device),
        )?;
        check("cuCtxSetCurrent", result::ctx::set_current(context))?;
        let mut buffers: BTreeMap<&str, (CUdeviceptr, usize)> = BTreeMap::new();
        for (name, bytes) in launch.contents()? {
            let address = check("cuMemAlloc", result::malloc_sync(bytes.len().max(1)))?;
            check("cuMemcpyHtoD", result::memcpy_htod_sync(address, &bytes))?;
            buffers.insert(name, (address, bytes.len()));
        }
        buffers
    };
    let addresses = buffers.iter().map(|(name, (address, _))| (*name, *address));
    let mut parameters = launch.parameters(&program, &addresses.collect())?;
    let parameters: Vec<*mut c_void> = program
        .parameters
        .iter()
        .map(|(offset, _)| ptr::from_mut(&mut parameters[*offset as usize]).cast())
        .collect();
    // SAFETY: the text ends with a zero byte; every parameter has its bytes, which outlive the call.
    unsafe {
        let module = check(
            "cuModuleLoadData",
            result::module::load_data(text.as_ptr().cast()),
        )?;
        let function = check(
            "cuModuleGetFunction",
            result::module::get_function(module, name),
        )?;
        enqueue(launch, function, parameters)?;
    }
    check("the kernel", result::ctx::synchronize())?;
    let mut compared = 0;
    for (name, (address, bytes)) in buffers {
        let mut found = vec![0u8; bytes];
        // SAFETY: as large as the allocation, and nothing runs there any more.
        check("cuMemcpyDtoH", unsafe {
            result::memcpy_dtoh_sync(&mut found, address)
        })?;
        compared += launch.verify(name, &found)?;
    }
    Ok(compared)
}

/// # Safety
/// The parameters are those of the function.
unsafe fn enqueue(
    launch: &Description,
    function: sys::CUfunction,
    mut parameters: Vec<*mut c_void>,
) -> Result<(), String> {
    use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as MOST_SHARED;
    let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (launch.grid, launch.block);
    let [x, y, z] = launch.cluster;
    let shared = launch.dynamic_shared_bytes;
    let attribute = result::function::set_function_attribute(function, MOST_SHARED, shared as i32);
    check("cuFuncSetAttribute", attribute)?;
    let mut cluster = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue {
            clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z },
        },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: block_x,
        blockDimY: block_y,
        blockDimZ: block_z,
        sharedMemBytes: shared,
        hStream: ptr::null_mut(),
        attrs: &mut cluster,
        numAttrs: 1,
    };
    let status = sys::cuLaunchKernelEx(&config, function, parameters.as_mut_ptr(), ptr::null_mut());
    check("cuLaunchKernelEx", status.result())
}
