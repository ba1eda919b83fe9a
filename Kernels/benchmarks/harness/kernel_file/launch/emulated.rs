//! By the PTX interpreter.

use std::ffi::c_void;

use runtime::{encode_tiled, Loaded, Shape};

use crate::description::Code;
use crate::plan::{Passed, Plan, MAP_BYTES};
use crate::tensor_map::Map;

pub struct Module(Loaded);

impl Module {
    pub fn load(code: &Code, entry: &str) -> Result<Self, String> {
        match code {
            Code::Ptx(text) => Loaded::new(text, entry).map(Self),
            Code::Cubin(_) => Err("machine code cannot be interpreted".into()),
        }
    }

    pub fn parameters(&self) -> Result<Vec<usize>, String> {
        Ok(self.0.parameters().to_vec())
    }

    pub fn prepare(&self, plan: &Plan) -> Result<Prepared, String> {
        let bytes = plan.arguments.iter().map(|argument| match argument {
            Passed::Bytes(bytes) => Ok(bytes.clone()),
            Passed::Map(map) => encode(map),
        });
        Ok(Prepared {
            arguments: bytes.collect::<Result<_, _>>()?,
            shape: Shape {
                grid: plan.grid,
                block: plan.block,
                cluster: plan.cluster,
                dynamic_shared_bytes: plan.shared_bytes,
                overlaps_previous: false,
            },
        })
    }
}

fn encode(map: &Map) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; MAP_BYTES];
    let steps = vec![1u32; map.sizes.len()];
    // SAFETY: arrays have as many elements as the rank, strides one fewer, and there is room for a map.
    let status = unsafe {
        encode_tiled(
            bytes.as_mut_ptr(),
            map.kind as i32,
            map.sizes.len() as u32,
            map.address as *mut c_void,
            map.sizes.as_ptr(),
            map.strides.as_ptr(),
            map.box_sizes.as_ptr(),
            steps.as_ptr(),
            0,
            map.swizzle.code() as i32,
            0,
            0,
        )
    };
    match status {
        0 => Ok(bytes),
        code => Err(format!(
            "the interpreter refuses a tensor map: error {code}"
        )),
    }
}

/// A launch with its arguments.
pub struct Prepared {
    arguments: Vec<Vec<u8>>,
    shape: Shape,
}

impl Prepared {
    pub fn launch(&self, module: &Module, _: usize) -> Result<(), String> {
        module.0.launch(&self.shape, &self.arguments)
    }
}
