//! By the PTX interpreter.

use std::ffi::c_void;

use runtime::{encode_tiled, Function, Shape};

use crate::description::Code;
use crate::plan::{Passed, Plan, MAP_BYTES};
use crate::tensor_map::Map;

pub struct Module(Function);

impl Module {
    pub fn load(code: &Code, entry: &str) -> Result<Self, String> {
        match code {
            Code::Ptx(text) => Function::load(text, entry).map(Self),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::Swizzle;
    use runtime::Memory;

    /// Thread i of one block: y[i] = 2 * x[i].
    const TWICE: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [count];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd5, %r2, 4;
    add.s64 %rd6, %rd3, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.f32 %f1, [%rd6];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd7], %f2;
DONE:
    ret;
}
";

    /// Copies the box at column 32, row 8 through shared memory: y[i] = box[i].
    const BOXED: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry boxed(.param .align 64 .b8 map[128], .param .u64 y)
{
    .shared .align 128 .b8 room[1024];
    .shared .align 8 .b64 barrier;
    .reg .pred %p<3>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<5>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, room;
    mov.u32 %r3, barrier;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
    @%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd2, %rd1;
    mov.u32 %r4, 32;
    mov.u32 %r5, 8;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2, {%r4, %r5}], [%r3];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
    @!%p2 bra WAIT;
    shl.b32 %r6, %r1, 2;
    add.u32 %r7, %r2, %r6;
    ld.shared.b32 %r8, [%r7];
    ld.param.u64 %rd3, [y];
    cvt.u64.u32 %rd4, %r6;
    add.u64 %rd3, %rd3, %rd4;
    st.global.b32 [%rd3], %r8;
    ret;
}
";

    fn plan(arguments: Vec<Passed>) -> Plan {
        Plan {
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: [1; 3],
            shared_bytes: 0,
            arguments,
        }
    }

    #[test]
    fn a_text_is_loaded_and_launched() {
        let values: Vec<u8> = (0..20u8)
            .flat_map(|value| f32::from(value).to_le_bytes())
            .collect();
        let (x, y) = (Memory::from_bytes(&values), Memory::new(values.len()));
        let module = Module::load(&Code::Ptx(TWICE.into()), "twice").unwrap();
        assert_eq!(module.parameters(), Ok(vec![8, 8, 4]));
        let address =
            |memory: &Memory| Passed::Bytes((memory.address() as u64).to_le_bytes().to_vec());
        let count = |count: u32| Passed::Bytes(count.to_le_bytes().to_vec());
        let prepared = module
            .prepare(&plan(vec![address(&x), address(&y), count(20)]))
            .unwrap();
        prepared.launch(&module, 0).unwrap();
        assert_eq!(y.to_bytes()[76..], 38f32.to_le_bytes());
        // What is not the problem's memory is not written to.
        let beyond = module
            .prepare(&plan(vec![address(&x), address(&y), count(32)]))
            .unwrap();
        assert!(beyond.launch(&module, 0).is_err());
        let few = module.prepare(&plan(vec![address(&x)])).unwrap();
        let error = few.launch(&module, 0).unwrap_err();
        assert_eq!(
            error,
            "'twice' takes parameters of [8, 8, 4] bytes, not [8]"
        );
    }

    #[test]
    fn what_cannot_be_interpreted_is_refused() {
        let error = |code: Code, entry: &str| Module::load(&code, entry).err().unwrap();
        assert!(error(Code::Cubin(Vec::new()), "twice").contains("machine code"));
        assert!(error(Code::Ptx(TWICE.into()), "thrice").contains("thrice"));
        error(Code::Ptx(TWICE.replace("add.f32", "add.f33")), "twice");
    }

    #[test]
    fn a_tensor_map_reaches_the_kernel() {
        let values: Vec<u8> = (0..64 * 96u16)
            .flat_map(|value| f32::from(value).to_le_bytes())
            .collect();
        let (x, y) = (Memory::from_bytes(&values), Memory::new(128));
        let map = Map {
            address: x.address(),
            kind: 7,
            sizes: vec![96, 64],
            strides: vec![384],
            box_sizes: vec![32, 8],
            swizzle: Swizzle::None,
        };
        let address = Passed::Bytes((y.address() as u64).to_le_bytes().to_vec());
        let module = Module::load(&Code::Ptx(BOXED.into()), "boxed").unwrap();
        assert_eq!(module.parameters(), Ok(vec![128, 8]));
        let prepared = module.prepare(&plan(vec![Passed::Map(map.clone()), address]));
        prepared.unwrap().launch(&module, 0).unwrap();
        let first = 8.0 * 96.0 + 32.0;
        let expected: Vec<u8> = (0..32u8)
            .flat_map(|column| (first + f32::from(column)).to_le_bytes())
            .collect();
        assert_eq!(y.to_bytes(), expected);
        let odd = Map { kind: 99, ..map };
        assert!(encode(&odd).unwrap_err().contains("refuses a tensor map"));
    }
}
