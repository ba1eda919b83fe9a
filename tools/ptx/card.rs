//! The same launch on a GPU, so that what the interpreter says can be held against the hardware.

use std::collections::BTreeMap;
use std::ffi::{c_void, CString};
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdeviceptr};
use machine::Program;

use crate::launch::Description;
use crate::near::Agreement;

fn check<T>(call: &str, result: Result<T, DriverError>) -> Result<T, String> {
    result.map_err(|error| {
        let text = error.error_string();
        let text = text.map_or("?".into(), |text| text.to_string_lossy());
        format!("{call}: {text}")
    })
}

/// The first GPU of this machine. What the process takes there it keeps until it ends.
pub struct Card {
    pub compute_capability: (i32, i32),
}

/// What became of a launch.
pub struct Outcome {
    pub agreement: Agreement,
    /// From the launch until the card was idle again.
    pub time: Duration,
}

impl Card {
    pub fn open() -> Result<Self, String> {
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        // SAFETY: only loads libraries. cudarc panics if there is none, so check first.
        if !unsafe { sys::is_culib_present() } {
            return Err(
                "libcuda.so.1 cannot be loaded: install NVIDIA's driver 580 or newer".to_owned(),
            );
        }
        check("cuInit", result::init())?;
        let device = check("cuDeviceGet", result::device::get(0))?;
        // SAFETY: the device exists, and its context is current before anything needs it.
        unsafe {
            let context = result::primary_ctx::retain(device);
            let context = check("cuDevicePrimaryCtxRetain", context)?;
            check("cuCtxSetCurrent", result::ctx::set_current(context))?;
            let of = |attribute| {
                let value = result::device::get_attribute(device, attribute);
                check("cuDeviceGetAttribute", value)
            };
            Ok(Self {
                compute_capability: (of(MAJOR)?, of(MINOR)?),
            })
        }
    }

    /// Whether the context still works; a kernel that faults takes it along.
    pub fn answers(&self) -> bool {
        result::ctx::synchronize().is_ok()
    }

    /// Runs a launch of `program`; `image` is its module as the driver takes it: PTX or machine code.
    pub fn run(
        &self,
        launch: &Description,
        program: &Program,
        mut image: Vec<u8>,
    ) -> Result<Outcome, String> {
        // Where a text ends.
        image.push(0);
        let name = CString::new(&*program.name).map_err(|_| "no name".to_owned())?;
        let mut buffers: BTreeMap<&str, (CUdeviceptr, usize)> = BTreeMap::new();
        for (name, bytes) in launch.contents()? {
            // SAFETY: copies are of the sizes that were allocated.
            unsafe {
                let address = check("cuMemAlloc", result::malloc_sync(bytes.len().max(1)))?;
                check("cuMemcpyHtoD", result::memcpy_htod_sync(address, &bytes))?;
                buffers.insert(name, (address, bytes.len()));
            }
        }
        let addresses = buffers.iter().map(|(name, (address, _))| (*name, *address));
        let mut parameters = launch.parameters(program, &addresses.collect())?;
        let parameters: Vec<*mut c_void> = program
            .parameters
            .iter()
            .map(|(offset, _)| ptr::from_mut(&mut parameters[*offset as usize]).cast())
            .collect();
        // SAFETY: the image ends with a zero byte; every parameter has its bytes, which outlive the call.
        let (module, time) = unsafe {
            let module = result::module::load_data(image.as_ptr().cast());
            let module = check("cuModuleLoadData", module)?;
            let function = result::module::get_function(module, name);
            let function = check("cuModuleGetFunction", function)?;
            let start = Instant::now();
            enqueue(launch, function, parameters)?;
            check("the kernel", result::ctx::synchronize())?;
            (module, start.elapsed())
        };
        let mut agreement = Agreement::default();
        for (name, (address, bytes)) in buffers {
            let mut found = vec![0u8; bytes];
            // SAFETY: as large as the allocation, and nothing runs there any more.
            unsafe {
                let copied = result::memcpy_dtoh_sync(&mut found, address);
                check("cuMemcpyDtoH", copied)?;
                check("cuMemFree", result::free_sync(address))?;
            }
            agreement.add(launch.verify(name, &found)?);
        }
        // SAFETY: nothing of it runs.
        check("cuModuleUnload", unsafe { result::module::unload(module) })?;
        Ok(Outcome { agreement, time })
    }
}

/// # Safety
/// The parameters are those of the function.
unsafe fn enqueue(
    launch: &Description,
    function: sys::CUfunction,
    mut parameters: Vec<*mut c_void>,
) -> Result<(), String> {
    use sys::CUfunction_attribute::{
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as MOST_SHARED,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as LARGE_CLUSTERS,
    };
    let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (launch.grid, launch.block);
    let [x, y, z] = launch.cluster;
    let shared = launch.dynamic_shared_bytes;
    // Clusters of more than eight blocks need to be allowed.
    for (attribute, value) in [(MOST_SHARED, shared as i32), (LARGE_CLUSTERS, 1)] {
        let set = result::function::set_function_attribute(function, attribute, value);
        check("cuFuncSetAttribute", set)?;
    }
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
