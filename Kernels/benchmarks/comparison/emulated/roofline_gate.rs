//! The tensor-core roofs under the interpreter: every product that they count is computed.

use numeric::DType;
use runtime::Memory;
use support::{
    assert_caught, counts_of, is_blackwell, is_hopper, room_for_singles, under_every_schedule,
};

const BLOCKS: u32 = 2;
const STEPS: u32 = 3;
const TYPES: [(DType, u32); 4] = [
    (DType::Bf16, 0),
    (DType::F16, 1),
    (DType::F8E4M3, 2),
    (DType::Nvfp4, 3),
];

/// With all operands 1, a thread's sum is the number of products added to it, whatever the layout in shared memory.
fn assert_all_computed(
    types: &[(DType, u32)],
    operand_bytes: usize,
    threads: usize,
    flops_per_step: fn(u32) -> u64,
    run: impl Fn(u32, usize, usize),
) {
    for &(dtype, code) in types {
        under_every_schedule(|| {
            // Of pairs, both.
            let one = if dtype.is_pair() {
                f64::from(0x22)
            } else {
                1.0
            };
            let ones = vec![one; operand_bytes / dtype.size_bytes()];
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
    assert_all_computed(&TYPES[..3], bytes, threads, flops, |code, operands, out| {
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
    assert_all_computed(&TYPES, bytes, 128, flops, |code, operands, out| {
        // SAFETY: as above.
        unsafe { roofline_cuda::tensor_memory_steps(code, BLOCKS, STEPS, operands, out, 0) }
            .unwrap();
    });
}

fn nvfp4_roof() {
    let bytes = roofline_cuda::tensor_memory_operand_bytes();
    let operands = Memory::from_bytes(&vec![0x22; bytes]);
    let out = room_for_singles(128);
    // SAFETY: as above.
    unsafe {
        roofline_cuda::tensor_memory_steps(3, 1, STEPS, operands.address(), out.address(), 0)
    }
    .unwrap();
    let products = roofline_cuda::tensor_memory_flops_per_step(3) / 2 * u64::from(STEPS);
    let sums = DType::F32.decode(&out.to_bytes());
    let wanted = products as f64 / 128.0;
    assert!(sums.iter().all(|sum| *sum == wanted), "not {wanted}");
}

/// Every product of NVFP4 is one that applies scales, with all of its depth.
#[test]
fn blackwell_applies_scales_of_nvfp4() {
    if !is_blackwell() {
        return;
    }
    let counts = counts_of(nvfp4_roof);
    let count = |start: &str| -> u64 {
        let forms = counts.iter().filter(|(form, _)| form.starts_with(start));
        forms.map(|(_, count)| count).sum()
    };
    let scaled = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X";
    let products = roofline_cuda::tensor_memory_flops_per_step(3) / 2 * u64::from(STEPS);
    assert_eq!(count(scaled) * 128 * 256 * 64, products);
    assert_eq!(count("tcgen05.mma"), count(scaled));
    assert_eq!(count("tcgen05.cp"), 3);
}

#[test]
fn planted_faults_of_nvfp4() {
    if !is_blackwell() {
        return;
    }
    assert_caught(("tcgen05.wait::ld.sync.aligned;", ""), nvfp4_roof);
    // Scales of a half.
    assert_caught(("943208504", "808464432"), nvfp4_roof);
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
