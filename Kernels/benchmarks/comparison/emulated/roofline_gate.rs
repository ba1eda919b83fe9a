//! The tensor-core roofs under the interpreter: every product that they count is computed.

use numeric::DType;
use runtime::Memory;
use support::{is_blackwell, is_hopper, room_for_singles, under_every_schedule};

const BLOCKS: u32 = 2;
const STEPS: u32 = 3;

/// With all operands 1, a thread's sum is the number of products added to it, whatever the layout in shared memory.
fn assert_all_computed(
    operand_bytes: usize,
    threads: usize,
    flops_per_step: fn(u32) -> u64,
    run: impl Fn(u32, usize, usize),
) {
    for (dtype, code) in [(DType::Bf16, 0), (DType::F16, 1), (DType::F8E4M3, 2)] {
        under_every_schedule(|| {
            let ones = vec![1.0; operand_bytes / dtype.size_bytes()];
            let operands = Memory::from_bytes(&dtype.encode(&ones));
            let out = room_for_singles(BLOCKS as usize * threads);
            run(code, operands.address(), out.address());
            let products = flops_per_step(code) / 2 * u64::from(STEPS);
            let wanted = products as f64 / 128.0;
            let sums = DType::F32.decode(&out.to_bytes());
            let other = sums.iter().position(|sum| *sum != wanted);
            assert_eq!(
                other.map(|thread| (thread, sums[thread])),
                None,
                "{dtype}, not {wanted}"
            );
        });
    }
}

#[test]
fn hopper() {
    if !is_hopper() {
        return;
    }
    const WARPGROUPS: u32 = 3;
    let bytes = roofline_cuda::tensor_operand_bytes();
    let flops = roofline_cuda::tensor_flops_per_step;
    let threads = WARPGROUPS as usize * 128;
    assert_all_computed(bytes, threads, flops, |code, operands, out| {
        // SAFETY: the interpreter finishes before it returns, and checks every access.
        unsafe { roofline_cuda::tensor_steps(code, BLOCKS, WARPGROUPS, STEPS, operands, out, 0) }
            .unwrap();
    });
}

#[test]
fn blackwell() {
    if !is_blackwell() {
        return;
    }
    let bytes = roofline_cuda::tensor_memory_operand_bytes();
    let flops = roofline_cuda::tensor_memory_flops_per_step;
    assert_all_computed(bytes, 128, flops, |code, operands, out| {
        // SAFETY: as above.
        unsafe { roofline_cuda::tensor_memory_steps(code, BLOCKS, STEPS, operands, out, 0) }
            .unwrap();
    });
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
