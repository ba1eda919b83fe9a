//! Products of one block, and what they take.

use machine::Schedule;

use super::{
    descriptor, instruction, kernel, noise, threads, Case, BRAIN, BYTES, HALF, SCALES, SINGLE,
};
use crate::When;

/// 64 KiB from p0 to shared memory, then `issue` by thread 0, and 64 columns of tensor memory to p1 as [128][64].
/// In there: %r7 the base in tensor memory, %d6 and %d7 the descriptors, %d5 the room >> 4, %r8 the instruction
/// descriptor, %p4 whether to accumulate.
fn product(issue: &str, a: u64, b: u64, bits: u32) -> String {
    let registers: Vec<String> = (0..64).map(|n| format!("%r{}", n + 100)).collect();
    let stores: String = (0..64)
        .map(|n| format!("st.global.u32 [%d9+{}], %r{};\n", 4 * n, n + 100))
        .collect();
    kernel(
        2,
        &format!(
            ".shared .align 1024 .b8 room[65536]; .shared .align 8 .b64 bar; .shared .align 4 .b32 base;
             mov.u32 %r90, room; mov.u32 %r91, bar; mov.u32 %r92, base; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];
             mov.u32 %r2, %r1; LOOP: mad.wide.u32 %d3, %r2, 4, %d1; ld.global.u32 %r3, [%d3];
             mad.lo.u32 %r4, %r2, 4, %r90;
             st.shared.u32 [%r4], %r3; add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, 16384; @%p1 bra LOOP;
             setp.lt.u32 %p2, %r1, 32; @!%p2 bra MADE; mov.u32 %r5, 128;
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r92], %r5;
             tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
             MADE: setp.eq.u32 %p3, %r1, 0; @!%p3 bra READY; mov.u32 %r6, 1;
             mbarrier.init.shared::cta.b64 [%r91], %r6;
             READY: fence.proxy.async; bar.sync 0; ld.shared.u32 %r7, [%r92];
             shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21; add.u32 %r10, %r7, %r9;
             mad.wide.u32 %d3, %r1, 128, %d1; {fill} tcgen05.wait::st.sync.aligned;
             tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
             @!%p3 bra WAIT;
             cvt.u64.u32 %d5, %r90; shr.u64 %d5, %d5, 4; mov.b64 %d6, {a}; add.s64 %d6, %d6, %d5;
             mov.b64 %d7, {b}; add.s64 %d7, %d7, %d5;
             mov.u32 %r8, {bits}; mov.pred %p4, 1; {issue}
             tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r91];
             WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra WAIT;
             tcgen05.fence::after_thread_sync;
             tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{registers}}}, [%r10]; tcgen05.wait::ld.sync.aligned;
             ld.param.u64 %d8, [p1]; mad.wide.u32 %d9, %r1, 256, %d8; {stores}
             bar.sync 0; @!%p2 bra GONE; mov.u32 %r5, 128;
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5; GONE:",
            a = a as i64,
            b = b as i64,
            registers = registers.join(","),
            // Something to accumulate on, of the operands' size: a larger one would swallow the products.
            fill = (0..32)
                .map(|n| format!("ld.global.u32 %r{}, [%d3+{}];\n", n + 100, 4 * n))
                .chain((0..4).map(|part| {
                    let list = registers[..32].join(",");
                    format!(
                        "tcgen05.st.sync.aligned.32x32b.x32.b32 [%r10+{}], {{{list}}};\n",
                        32 * part
                    )
                }))
                .collect::<String>()
        ),
    )
}

pub(super) fn case(issue: &str, a: u64, b: u64, bits: u32, mask: (u32, u32)) -> Case {
    let mut room = noise(15360, mask);
    room.extend(noise(1024, SCALES));
    Case {
        text: product(issue, a, b, bits),
        launch: threads(128),
        buffers: vec![room, vec![0; 128 * 64]],
        map: None,
    }
}

#[test]
fn halves_in_every_layout() {
    let issue = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    for (layout, leading, stride, bits) in [
        (0, 4096, 128, instruction(128, 64, 1, 1, 0)),
        (6, 16, 256, instruction(128, 64, 0, 0, 1 << 13)),
        (4, 16, 512, instruction(64, 64, 1, 1, 0)),
        (2, 16, 1024, instruction(128, 64, 1, 1, 0)),
    ] {
        let (a, b) = (
            descriptor(0, leading, stride, layout),
            descriptor(32768, leading, stride, layout),
        );
        case(issue, a, b, bits, BRAIN).agrees();
    }
}

#[test]
fn columns_in_steps_of_eight() {
    let issue = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    let (a, b) = (descriptor(0, 16, 1024, 2), descriptor(32768, 16, 1024, 2));
    for columns in [8, 24] {
        case(issue, a, b, instruction(128, columns, 1, 1, 0), BRAIN).agrees();
    }
    // Of bytes whose columns are contiguous there are 16 at least, on both sides.
    let issue = issue.replace("f16", "f8f6f4");
    let (a, b) = (
        descriptor(0, 4096, 1024, 2),
        descriptor(32768, 4096, 1024, 2),
    );
    let bytes = |columns| instruction(128, columns, 0, 0, 1 << 16);
    case(&issue, a, b, bytes(16), BYTES).agrees();
    let few = case(&issue, a, b, bytes(8), BYTES);
    let error = few
        .run(&few.text, Schedule::AtOnce)
        .unwrap_err()
        .to_string();
    assert!(error.contains("128 rows and 8 columns"), "{error}");
    let text = few.rewritten(When::AtOnce);
    let error = few.run(&text, Schedule::AtOnce).unwrap_err().to_string();
    assert!(error.contains("assertion"), "{error}");
}

#[test]
fn contiguous_rows() {
    let issue = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    for (layout, leading, stride) in [(0, 2048, 128), (2, 4096, 1024), (1, 4096, 512)] {
        let (a, b) = (
            descriptor(0, leading, stride, layout),
            descriptor(32768, leading, stride, layout),
        );
        case(
            issue,
            a,
            b,
            instruction(128, 64, 1, 1, 1 << 15 | 1 << 16),
            BRAIN,
        )
        .agrees();
    }
    let issue = "tcgen05.mma.cta_group::1.kind::tf32 [%r7], %d6, %d7, %r8, %p4;";
    let (a, b) = (descriptor(0, 4096, 512, 1), descriptor(32768, 4096, 512, 1));
    case(
        issue,
        a,
        b,
        instruction(128, 32, 2, 2, 1 << 15 | 1 << 16),
        SINGLE,
    )
    .agrees();
}

#[test]
fn accumulators_of_halves_and_scaled_inputs() {
    let issue = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4, 3; mov.pred %p4, 0;
                 tcgen05.mma.cta_group::1.kind::f16 [%r7+32], %d6, %d7, %r8, !%p4;";
    let (a, b) = (descriptor(0, 16, 1024, 2), descriptor(32768, 16, 1024, 2));
    case(issue, a, b, instruction(128, 32, 1, 1, 0), BRAIN).agrees();
    case(issue, a, b, instruction(128, 32, 0, 0, 0) & !(3 << 4), HALF).agrees();
}

#[test]
fn an_operand_in_tensor_memory() {
    let issue = "tcgen05.mma.cta_group::1.kind::f16 [%r7], [%r7+40], %d7, %r8, %p4;";
    let b = descriptor(32768, 16, 1024, 2);
    for rows in [64, 128] {
        case(issue, 0, b, instruction(rows, 32, 1, 1, 0), BRAIN).agrees();
    }
}

#[test]
fn narrow_elements() {
    let issue = "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r7], %d6, %d7, %r8, %p4;";
    let (a, b) = (descriptor(0, 16, 1024, 2), descriptor(32768, 16, 1024, 2));
    for (format_a, format_b) in [(0, 1), (3, 4), (5, 0)] {
        case(
            issue,
            a,
            b,
            instruction(128, 32, format_a, format_b, 0),
            BYTES,
        )
        .agrees();
    }
}

#[test]
fn block_scales() {
    // 16 bytes of scales for each of 32 lanes, from 60 KiB on.
    let copy = "mov.b64 %d20, 70403104440320; add.s64 %d20, %d20, %d5; add.s64 %d20, %d20, 3840;
         add.u32 %r93, %r7, 64; add.u32 %r94, %r7, 68;
         tcgen05.cp.cta_group::1.32x128b.warpx4 [%r93], %d20;
         add.s64 %d20, %d20, 64; tcgen05.cp.cta_group::1.32x128b.warpx4 [%r94], %d20;";
    let (a, b) = (descriptor(0, 16, 1024, 2), descriptor(32768, 16, 1024, 2));
    for (opcode, bits) in [
        (
            "mxf8f6f4.block_scale.scale_vec::1X",
            instruction(128, 32, 0, 1, 1 << 23 | 2 << 29) | 1 << 4,
        ),
        (
            "mxf4.block_scale.scale_vec::2X",
            instruction(128, 32, 1, 1, 1 << 23 | 2 << 29) & !(3 << 4),
        ),
        (
            "mxf4nvf4.block_scale.scale_vec::4X",
            instruction(128, 32, 1, 1, 0) & !(3 << 4),
        ),
    ] {
        let issue = format!(
            "{copy} tcgen05.mma.cta_group::1.kind::{opcode} [%r7], %d6, %d7, %r8, [%r93], [%r94], %p4;"
        );
        case(&issue, a, b, bits, BYTES).agrees();
    }
}

#[test]
fn copies_to_tensor_memory() {
    let source = descriptor(0, 4096, 128, 0) as i64;
    for shape in [
        "128x256b",
        "4x256b",
        "128x128b",
        "64x128b.warpx2::02_13",
        "64x128b.warpx2::01_23",
        "32x128b.warpx4",
    ] {
        let issue = format!(
            "mov.b64 %d20, {source}; add.s64 %d20, %d20, %d5; tcgen05.cp.cta_group::1.{shape} [%r7+8], %d20;"
        );
        case(&issue, 0, 0, 0, (u32::MAX, 0)).agrees();
    }
}

#[test]
fn rows_of_tensor_memory_shift() {
    let (a, b) = (descriptor(0, 16, 1024, 2), descriptor(32768, 16, 1024, 2));
    let issue =
        "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4; add.u32 %r93, %r7, 0x400010;
                 tcgen05.shift.cta_group::1.down [%r93]; tcgen05.shift.cta_group::1.down [%r7+3];
                 tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    let case = |issue: &str| case(issue, a, b, instruction(128, 64, 1, 1, 0), BRAIN);
    case(issue).agrees();
    let text = case(issue).rewritten(When::Late);
    let wrong = text.replace("ld.relaxed.gpu.global.b32 word, [x64+4]", "mov.b32 word, 0");
    assert_ne!(text, wrong);
    let wanted = case(issue).wanted();
    let found = case(issue).difference(&wrong, Schedule::AtOnce, &wanted);
    assert!(found.is_some_and(|found| found.starts_with("word ")));
    // From lane 16 no shift begins.
    let text = case(&issue.replace("0x400010", "0x100010")).rewritten(When::AtOnce);
    let found = case(issue).difference(&text, Schedule::AtOnce, &wanted);
    assert!(found.is_some_and(|found| found.contains("assertion")));
}
