//! By CUDA's driver, on the context that the worker has opened.

use std::ffi::{c_void, CString};
use std::mem::MaybeUninit;
use std::ptr;

use cudarc::driver::sys;

use crate::description::Code;
use crate::plan::{Passed, Plan, MAP_BYTES};
use crate::tensor_map::Map;

/// Blocks of a cluster that every kernel may have.
const PORTABLE_BLOCKS: u32 = 8;

fn check(call: &str, status: sys::CUresult) -> Result<(), String> {
    status.result().map_err(|error| {
        let name = error.error_name();
        let name = name.map_or("?".into(), |name| name.to_string_lossy());
        let text = error.error_string();
        let text = text.map_or("?".into(), |text| text.to_string_lossy());
        format!("{call}: {name} ({text})")
    })
}

/// Belongs to the context that was current when it was loaded; unloaded on drop.
pub struct Module {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl Module {
    pub fn load(code: &Code, entry: &str) -> Result<Self, String> {
        let mut image = match code {
            Code::Ptx(text) => text.clone().into_bytes(),
            Code::Cubin(bytes) => bytes.clone(),
        };
        // Where a text ends.
        image.push(0);
        let name = CString::new(entry).map_err(|_| "entry has a zero byte".to_owned())?;
        let mut loaded = Self {
            module: ptr::null_mut(),
            function: ptr::null_mut(),
        };
        // SAFETY: PTX ends with a zero, a cubin with its own sections; results go to fields that outlive the calls.
        unsafe {
            let status = sys::cuModuleLoadData(&mut loaded.module, image.as_ptr().cast());
            check("the driver refuses the code: cuModuleLoadData", status)?;
            let status =
                sys::cuModuleGetFunction(&mut loaded.function, loaded.module, name.as_ptr());
            check(
                &format!("the code has no kernel '{entry}': cuModuleGetFunction"),
                status,
            )?;
        }
        Ok(loaded)
    }

    /// The size of each parameter of the kernel.
    pub fn parameters(&self) -> Result<Vec<usize>, String> {
        let mut sizes = Vec::new();
        loop {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: the function is loaded; results go to variables that outlive the call.
            let status = unsafe {
                sys::cuFuncGetParamInfo(self.function, sizes.len(), &mut offset, &mut bytes)
            };
            match status {
                // There are no more.
                sys::CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(sizes),
                status => check("cuFuncGetParamInfo", status)?,
            }
            sizes.push(bytes);
        }
    }

    pub fn prepare(&self, plan: &Plan) -> Result<Prepared, String> {
        use sys::CUfunction_attribute::{
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED,
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as CLUSTER,
        };
        let blocks: u32 = plan.cluster.iter().product();
        let wide = i32::from(blocks > PORTABLE_BLOCKS);
        for (attribute, value) in [(SHARED, plan.shared_bytes as i32), (CLUSTER, wide)] {
            if value > 0 {
                // SAFETY: the function is loaded.
                let status = unsafe { sys::cuFuncSetAttribute(self.function, attribute, value) };
                check("cuFuncSetAttribute", status)?;
            }
        }
        let arguments = plan.arguments.iter().map(slot);
        Ok(Prepared {
            plan: plan.clone(),
            slots: arguments.collect::<Result<_, _>>()?,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if !self.module.is_null() {
            // SAFETY: loaded by `load`, unloaded once. A failure means that the context is gone, with the module.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

/// Room for any argument, aligned as maps must be.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Slot([u8; MAP_BYTES]);

fn slot(argument: &Passed) -> Result<Slot, String> {
    match argument {
        Passed::Map(map) => encode(map),
        Passed::Bytes(bytes) => {
            let mut slot = Slot([0; MAP_BYTES]);
            slot.0[..bytes.len()].copy_from_slice(bytes);
            Ok(slot)
        }
    }
}

fn encode(map: &Map) -> Result<Slot, String> {
    let mut slot = MaybeUninit::<Slot>::zeroed();
    let steps = vec![1u32; map.sizes.len()];
    // SAFETY: both enumerations have the values that a map's fields have; arrays have as many elements as the rank,
    // strides one fewer; the slot is as large and as aligned as a map.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            slot.as_mut_ptr().cast(),
            std::mem::transmute::<u32, sys::CUtensorMapDataType>(map.kind),
            map.sizes.len() as u32,
            map.address as *mut c_void,
            map.sizes.as_ptr(),
            map.strides.as_ptr(),
            map.box_sizes.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            std::mem::transmute::<u32, sys::CUtensorMapSwizzle>(map.swizzle.code()),
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    check("cuTensorMapEncodeTiled", status)?;
    // SAFETY: zeroed, then written by the driver.
    Ok(unsafe { slot.assume_init() })
}

/// A launch with its arguments.
pub struct Prepared {
    plan: Plan,
    slots: Vec<Slot>,
}

impl Prepared {
    pub fn launch(&self, module: &Module, stream: usize) -> Result<(), String> {
        let ([x, y, z], [block_x, block_y, block_z]) = (self.plan.grid, self.plan.block);
        let [cluster_x, cluster_y, cluster_z] = self.plan.cluster;
        let mut cluster = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            pad: Default::default(),
            value: sys::CUlaunchAttributeValue {
                clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 {
                    x: cluster_x,
                    y: cluster_y,
                    z: cluster_z,
                },
            },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: self.plan.shared_bytes,
            hStream: stream as sys::CUstream,
            attrs: &mut cluster,
            numAttrs: u32::from(self.plan.cluster != [1; 3]),
        };
        let address = |slot: &Slot| ptr::from_ref(slot).cast_mut().cast::<c_void>();
        let mut addresses: Vec<*mut c_void> = self.slots.iter().map(address).collect();
        // SAFETY: the function is loaded; every parameter has a slot that is as large as it, which was checked against
        // the kernel; slots and attributes outlive the call; the caller's stream is a CUstream.
        let status = unsafe {
            sys::cuLaunchKernelEx(
                &config,
                module.function,
                addresses.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernelEx", status)
    }
}
