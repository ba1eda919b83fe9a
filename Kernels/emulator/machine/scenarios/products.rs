//! mma.sync, ldmatrix and wgmma against plain sums.

use super::{execute, kernel, late, refusal, threads, SCHEDULES};
use crate::launch::Queue;
use crate::number::{f32_to_bf16, f32_to_f16, Rounding, E4M3};
use crate::{Launch, Schedule};

/// Small whole numbers: every sum is exact.
fn small(at: u32) -> f32 {
    (at.wrapping_mul(2_654_435_761) >> 28) as f32 - 8.0
}

fn packed(values: &[f32], encode: fn(f32) -> u32) -> Vec<u32> {
    values
        .chunks(2)
        .map(|pair| encode(pair[0]) | encode(pair[1]) << 16)
        .collect()
}

/// A is 16 by 16 with rows of 32 bytes, B 16 by 8 with rows (of depth) of 16 bytes.
fn product_of_a_warp() -> String {
    kernel(
        3,
        ".shared .align 16 .b8 room[768]; mov.u32 %r90, room; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];
        ld.param.u64 %d2, [p1];
         mul.lo.u32 %r2, %r1, 16; mad.wide.u32 %d3, %r1, 16, %d1; ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%d3];
         add.u32 %r7, %r90, %r2; st.shared.v4.u32 [%r7], {%r3,%r4,%r5,%r6};
         setp.lt.u32 %p1, %r1, 16; @!%p1 bra GO; mad.wide.u32 %d3, %r1, 16, %d2;
         ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%d3];
         st.shared.v4.u32 [%r7+512], {%r3,%r4,%r5,%r6}; GO: bar.sync 0;
         and.b32 %r8, %r1, 15; shr.u32 %r9, %r1, 4; mad.lo.u32 %r10, %r8, 32, %r90; mad.lo.u32 %r10, %r9, 16, %r10;
         ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r11,%r12,%r13,%r14}, [%r10];
         mad.lo.u32 %r15, %r8, 16, %r90; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r16,%r17}, [%r15+512];
         mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
         mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f3,%f4,%f5,%f6}, {%r11,%r12,%r13,%r14},
         {%r16,%r17}, {%f1,%f2,%f1,%f2};
         shr.u32 %r20, %r1, 2; and.b32 %r21, %r1, 3; mad.lo.u32 %r22, %r20, 8, 0; mad.lo.u32 %r22, %r21, 2, %r22;
         ld.param.u64 %d4, [p2]; mad.wide.u32 %d5, %r22, 4, %d4; st.global.v2.f32 [%d5], {%f3,%f4};
         st.global.v2.f32 [%d5+256], {%f5,%f6};",
    )
}

#[test]
pub fn a_product_of_a_warp_from_ldmatrix() {
    let text = product_of_a_warp();
    let a: Vec<f32> = (0..256).map(small).collect();
    let b: Vec<f32> = (300..428).map(small).collect();
    let mut buffers = [
        packed(&a, f32_to_bf16),
        packed(&b, f32_to_bf16),
        vec![0; 128],
    ];
    execute(&text, &threads(32), &mut buffers).unwrap();
    for (at, bits) in buffers[2].iter().enumerate() {
        let (row, column) = (at / 8, at % 8);
        let sum: f32 = (0..16).map(|k| a[row * 16 + k] * b[k * 8 + column]).sum();
        assert_eq!(
            f32::from_bits(*bits),
            sum + if column % 2 == 0 { 1.0 } else { 2.0 },
            "{row}, {column}"
        );
    }
}

#[test]
fn results_that_go_nowhere() {
    let (rows, sums) = ("{%r11,%r12,%r13,%r14}, [", "{%f3,%f4,%f5,%f6}, {%r11");
    let all = product_of_a_warp();
    let text = all.replace(sums, "{%f3,_,%f5,_}, {%r11").replace(
        "mma.sync",
        "mov.f32 %f4, 0f42280000; mov.f32 %f6, %f4; mma.sync",
    );
    assert_ne!(text, all);
    let ones = vec![0x3f80_3f80; 128];
    let run = |text: &str| {
        let mut buffers = [ones.clone(), ones[..64].to_vec(), vec![0; 128]];
        execute(text, &threads(32), &mut buffers).unwrap();
        buffers[2]
            .iter()
            .map(|bits| f32::from_bits(*bits))
            .collect::<Vec<_>>()
    };
    let wanted = |even: f32, odd: f32| [even, odd].repeat(64);
    assert_eq!(run(&text), wanted(17.0, 42.0));
    // The second half of A's depth is dropped where it is loaded, and keeps what its registers held.
    let text = all.replace(
        &format!("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {rows}"),
        "mov.u32 %r13, 0; mov.u32 %r14, 0;
         ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r11,%r12,_,_}, [",
    );
    assert_ne!(text, all);
    assert_eq!(run(&text), wanted(9.0, 10.0));
    // Integers.
    let whole = all
        .replace("k16.row.col.f32.bf16.bf16.f32", "k32.row.col.s32.s8.s8.s32")
        .replace(sums, "{_,%r34,_,%r36}, {%r11")
        .replace("{%f1,%f2,%f1,%f2}", "{5, 6, 7, 8}")
        .replace("{%f3,%f4}", "{%f1,%r34}")
        .replace("{%f5,%f6}", "{%f1,%r36}")
        .replace("st.global.v2.f32", "st.global.v2.b32");
    let mut buffers = [vec![0x0101_0101; 128], vec![0x0101_0101; 64], vec![0; 128]];
    execute(&whole, &threads(32), &mut buffers).unwrap();
    let (upper, lower) = buffers[2].split_at(64);
    assert_eq!(upper, [1f32.to_bits(), 38].repeat(32));
    assert_eq!(lower, [1f32.to_bits(), 40].repeat(32));
    // A warpgroup's sums are read as well as written.
    let text = warpgroup("k16.f32.bf16.bf16", 0, 0, ", 0, 0").replace("{%f1,%f2,", "{_,%f2,");
    let message = refusal(&text, &threads(128), &[vec![0; 2048], vec![0; 1024]]);
    assert!(message.contains("a result that is a sink"), "{message}");
}

/// A warpgroup's product of 64 rows and 16 columns, with operands written into shared memory byte by byte.
fn warpgroup(form: &str, a_bits: u64, b_bits: u64, tail: &str) -> String {
    kernel(
        2,
        &format!(
            ".shared .align 1024 .b8 room[8192]; mov.u32 %r90, room; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];
             mov.u32 %r2, %r1; LOOP: mad.wide.u32 %d3, %r2, 4, %d1; ld.global.u32 %r3, [%d3];
             mad.lo.u32 %r4, %r2, 4, %r90;
             st.shared.u32 [%r4], %r3; add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, 2048; @%p1 bra LOOP;
             fence.proxy.async; bar.sync 0;
             cvt.u64.u32 %d5, %r90; shr.u64 %d5, %d5, 4; mov.b64 %d6, {a_bits}; add.s64 %d6, %d6, %d5;
             mov.b64 %d7, {b_bits}; add.s64 %d7, %d7, %d5;
             mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; mov.f32 %f5, %f1;
             mov.f32 %f6, %f1; mov.f32 %f7, %f1; mov.f32 %f8, %f1;
             wgmma.fence.sync.aligned;
             wgmma.mma_async.sync.aligned.m64n16{form} {{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}}, %d6, %d7, 1, 1, 1{tail};
             wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
             ld.param.u64 %d4, [p1]; mad.wide.u32 %d5, %r1, 32, %d4;
             st.global.v4.f32 [%d5], {{%f1,%f2,%f3,%f4}}; st.global.v4.f32 [%d5+16], {{%f5,%f6,%f7,%f8}};"
        ),
    )
}

fn check_warpgroup(text: &str, room: &[u32], product: impl Fn(usize, usize) -> f32) {
    for schedule in SCHEDULES {
        let mut buffers = [room.to_vec(), vec![0; 1024]];
        execute(
            text,
            &Launch {
                schedule,
                ..threads(128)
            },
            &mut buffers,
        )
        .unwrap();
        for (at, bits) in buffers[1].iter().enumerate() {
            let (thread, register) = (at / 8, at % 8);
            let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (register / 2 % 2);
            let column = register / 4 * 8 + thread % 4 * 2 + register % 2;
            assert_eq!(
                f32::from_bits(*bits),
                1.0 + product(row, column),
                "{row}, {column}"
            );
        }
    }
    // Without the wait the sums are not there yet when the work is late.
    let broken = text.replace(
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 1;",
    );
    for schedule in [Schedule::Late { seed: 1 }, late(Queue::Products)] {
        let mut buffers = [room.to_vec(), vec![0; 1024]];
        let launch = Launch {
            schedule,
            ..threads(128)
        };
        execute(&broken, &launch, &mut buffers).unwrap();
        assert!(buffers[1].iter().all(|bits| f32::from_bits(*bits) == 1.0));
    }
    let unfenced = text.replace("wgmma.fence.sync.aligned;", "");
    let error = execute(
        &unfenced,
        &threads(128),
        &mut [room.to_vec(), vec![0; 1024]],
    )
    .unwrap_err();
    assert!(error.to_string().contains("without a wgmma.fence"));
}

#[test]
pub fn a_warpgroup_with_swizzled_operands() {
    // Rows of 128 bytes; 16-byte chunk c of row r lies at c ^ (r % 8). A at 0.
    let value = |row: usize, k: usize| small((row * 64 + k) as u32);
    let mut halves = vec![0u32; 64 * 64];
    for (row, k) in (0..64).flat_map(|row| (0..64).map(move |k| (row, k))) {
        halves[row * 64 + ((k / 8) ^ (row % 8)) * 8 + k % 8] = f32_to_bf16(value(row, k));
    }
    let room: Vec<u32> = halves
        .chunks(2)
        .map(|pair| pair[0] | pair[1] << 16)
        .collect();
    let bits = (1u64 << 62) | (1024 >> 4) << 32;
    // The second step of depth 16: 32 bytes further.
    // B is the last 16 rows of A.
    let text = warpgroup(
        "k16.f32.bf16.bf16",
        bits + 2,
        bits + 2 + 48 * 128 / 16,
        ", 0, 0",
    );
    check_warpgroup(&text, &room, |row, column| {
        (16..32)
            .map(|k| value(row, k) * value(48 + column, k))
            .sum()
    });
}

#[test]
pub fn a_warpgroup_with_bytes_and_no_swizzle() {
    // Cores of 8 rows of 16 bytes: rows 128 bytes apart in steps of 8, depth 1024 bytes apart in A and 256 in B.
    let value = |row: usize, k: usize| small((row * 40 + k) as u32) / 2.0;
    let mut bytes = vec![0u8; 8192];
    for (row, k) in (0..80).flat_map(|row| (0..32).map(move |k| (row, k))) {
        let (start, local, lead) = if row < 64 {
            (0, row, 1024)
        } else {
            (4096, row - 64, 256)
        };
        bytes[start + k / 16 * lead + local / 8 * 128 + local % 8 * 16 + k % 16] =
            E4M3.encode(value(row, k).into(), Rounding::NearestEven, true) as u8;
    }
    let room: Vec<u32> = bytes
        .chunks(4)
        .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
        .collect();
    let text = warpgroup(
        "k32.f32.e4m3.e4m3",
        (1024 >> 4) << 16 | (128 >> 4) << 32,
        (4096 >> 4) | (256 >> 4) << 16 | (128 >> 4) << 32,
        "",
    );
    check_warpgroup(&text, &room, |row, column| {
        (0..32).map(|k| value(row, k) * value(64 + column, k)).sum()
    });
}

#[test]
fn a_matrix_transposed_between_lanes() {
    // Lane n holds elements 2n and 2n + 1 of 64.
    let text = kernel(
        1,
        "mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 0x20002; add.u32 %r2, %r2, 0x10000;
         movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;
         ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r3;",
    );
    let mut buffers = [vec![0; 32]];
    execute(&text, &threads(32), &mut buffers).unwrap();
    for (at, word) in buffers[0].iter().enumerate() {
        let (row, column) = (at / 4, at % 4 * 2);
        let at_place = |column: usize| column * 8 + row;
        let wanted = at_place(column) | at_place(column + 1) << 16;
        assert_eq!(*word as usize, wanted, "{at}");
    }
}

#[test]
pub fn a_transposed_operand() {
    // Both operands with contiguous rows: 64 by 16 of A as depth-major rows of 128 bytes, B as rows of 32 bytes.
    let value = |row: usize, k: usize| small((row * 16 + k + 7) as u32);
    let mut bytes = vec![0u8; 8192];
    let mut put = |at: usize, value: f32| {
        let half = f32_to_f16(value).to_le_bytes();
        bytes[at..at + 2].copy_from_slice(&half[..2]);
    };
    for (row, k) in (0..64).flat_map(|row| (0..16).map(move |k| (row, k))) {
        put(
            k / 8 * 1024 + k % 8 * 128 + ((row / 8) ^ (k % 8)) * 16 + row % 8 * 2,
            value(row, k),
        );
    }
    for (row, k) in (0..16).flat_map(|row| (0..16).map(move |k| (row, k))) {
        // No swizzle: 8 columns of one depth in 16 bytes, depths 16 apart, 8 of them 128, columns 256.
        put(
            4096 + k / 8 * 128 + k % 8 * 16 + row / 8 * 256 + row % 8 * 2,
            value(64 + row, k),
        );
    }
    let room: Vec<u32> = bytes
        .chunks(4)
        .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
        .collect();
    // A: 128-byte swizzle, 8 depths 1024 bytes apart by the stride. B: no swizzle.
    let a = 1u64 << 62 | (1024 >> 4) << 32;
    let b_swizzle_none = (4096u64 >> 4) | (128 >> 4) << 16 | (256 >> 4) << 32;
    let text = warpgroup("k16.f32.f16.f16", a, b_swizzle_none, ", 1, 1");
    check_warpgroup(&text, &room, |row, column| {
        (0..16).map(|k| value(row, k) * value(64 + column, k)).sum()
    });
}
