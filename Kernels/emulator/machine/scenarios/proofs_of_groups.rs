//! Exact results for what threads do together: warps, blocks, clusters, copies of boxes, and matrix products.

use super::{execute, execute_prepared, kernel, threads};
use crate::number::{f32_to_bf16, f32_to_f16, Rounding, E4M3};
use crate::{Launch, TensorMap};

/// Each thread runs `body` with its number in %r1 and leaves words in %r20..; what they are, thread by thread.
fn of_threads(count: u32, words: usize, body: &str) -> Vec<u32> {
    let stores: String = (0..words)
        .map(|at| format!("st.global.u32 [%d22+{}], %r{};", 4 * at, 20 + at))
        .collect();
    let text = kernel(
        2,
        &format!(
            "mov.u32 %r1, %tid.x; ld.param.u64 %d20, [p0]; ld.param.u64 %d21, [p1];
             mad.wide.u32 %d22, %r1, {}, %d21; {body} {stores}",
            4 * words
        ),
    );
    let mut buffers = [(0..1024).collect(), vec![0; count as usize * words]];
    execute(&text, &threads(count), &mut buffers).unwrap_or_else(|error| panic!("{body}: {error}"));
    std::mem::take(&mut buffers[1])
}

pub fn warps() {
    let out = of_threads(
        32,
        7,
        "add.s32 %r2, %r1, 100; shfl.sync.bfly.b32 %r20|%p1, %r2, 5, 31, -1;
         shfl.sync.idx.b32 %r21|%p1, %r2, 7, 31, -1; shfl.sync.up.b32 %r22|%p1, %r2, 3, 0, -1;
         setp.gt.s32 %p2, %r1, 28; vote.sync.ballot.b32 %r23, %p2, -1; vote.sync.any.pred %p3, %p2, -1;
         selp.u32 %r24, 1, 0, %p3; sub.s32 %r3, %r1, 40; redux.sync.max.s32 %r25, %r3, -1;
         redux.sync.max.u32 %r26, %r3, -1; bar.warp.sync -1; bra.uni NEXT; trap; NEXT:",
    );
    for (lane, words) in out.chunks(7).enumerate() {
        let lane = lane as u32;
        let up = if lane < 3 { lane } else { lane - 3 };
        let wanted = [
            (lane ^ 5) + 100,
            107,
            up + 100,
            7 << 29,
            1,
            -9i32 as u32,
            -9i32 as u32,
        ];
        assert_eq!(words, wanted, "lane {lane}");
    }
    // Parts of a parameter, and the parameter by its address.
    let out = of_threads(
        1,
        5,
        "ld.param.u32 %r2, [p0]; ld.param.s32 %r3, [p0+4]; mov.b64 %d1, {%r2, %r3}; sub.s64 %d1, %d1, %d20;
         cvt.u32.u64 %r20, %d1; ld.param.v2.u32 {%r4, %r5}, [p0]; sub.s32 %r4, %r4, %r2; sub.s32 %r5, %r5, %r3;
         or.b32 %r21, %r4, %r5; ld.param.u8 %h1, [p0+1]; cvt.u32.u16 %r6, %h1; shr.u32 %r7, %r2, 8;
         and.b32 %r7, %r7, 255; sub.s32 %r22, %r6, %r7; ld.param.f32 %f1, [p0]; mov.b32 %r8, %f1;
         sub.s32 %r23, %r8, %r2; mov.b64 %d2, p0; cvta.param.u64 %d3, %d2; ld.u64 %d4, [%d3];
         sub.s64 %d4, %d4, %d20; cvt.u32.u64 %r24, %d4; cvta.to.global.u64 %d5, %d20;",
    );
    assert_eq!(out, [0; 5]);
}

pub fn blocks() {
    // One warp tells the other by a barrier that it only arrives at; all learn whether one of them is the last.
    let out = of_threads(
        64,
        3,
        ".shared .align 4 .b32 word; mov.u32 %r90, word; setp.lt.u32 %p1, %r1, 32; @!%p1 bra WAITS;
         setp.eq.s32 %p2, %r1, 3; @%p2 st.shared.u32 [%r90], 77; bar.arrive 1, 64; bra BOTH;
         WAITS: bar.sync 1, 64; ld.shared.u32 %r20, [%r90]; BOTH: setp.eq.s32 %p3, %r1, 63;
         bar.red.or.pred %p4, 2, 64, %p3; selp.u32 %r21, 1, 0, %p4;
         setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.inc.sync.aligned.u32 64;
         griddepcontrol.launch_dependents; griddepcontrol.wait; cp.async.bulk.prefetch.L2.global [%d20], 16;
         atom.global.add.u32 %r3, [%d20], 1; bar.sync 0; atom.acq_rel.gpu.global.add.s32 %r22, [%d20], 0;",
    );
    for (thread, words) in out.chunks(3).enumerate() {
        let seen = if thread < 32 { 0 } else { 77 };
        assert_eq!(words, [seen, 1, 64], "thread {thread}");
    }
    // Blocks of a cluster store to each other: plainly, and with an mbarrier that counts the bytes.
    let text = kernel(
        2,
        ".shared .align 16 .b8 room[32]; .shared .align 8 .b64 bar; mov.u32 %r90, room; mov.u32 %r91, bar;
         ld.param.u64 %d21, [p1]; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mov.u32 %r4, 1;
         mbarrier.init.shared::cta.b64 [%r91], %r4; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 24;
         barrier.cluster.arrive.relaxed; barrier.cluster.wait;
         mapa.shared::cluster.u32 %r5, %r90, %r3; mapa.shared::cluster.u32 %r6, %r91, %r3;
         cvt.rn.f32.s32 %f1, %r2; add.f32 %f2, %f1, 0f41200000; st.shared::cluster.f32 [%r5+16], %f2;
         st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r5], {%f1, %f2, %f1, %f2}, [%r6];
         st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%r5+24], {%f2, %f1}, [%r6];
         W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra W;
         barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
         ld.shared.v4.f32 {%f3, %f4, %f5, %f6}, [%r90]; ld.shared.f32 %f7, [%r90+16];
         ld.shared.f32 %f8, [%r90+24]; ld.shared.f32 %f9, [%r90+28];
         mad.wide.u32 %d22, %r2, 32, %d21; st.global.v4.f32 [%d22], {%f3, %f4, %f5, %f6};
         st.global.f32 [%d22+16], %f7; st.global.f32 [%d22+20], %f8; st.global.f32 [%d22+24], %f9;",
    );
    let launch = Launch {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..threads(1)
    };
    let mut buffers = [vec![0; 4], vec![0; 16]];
    execute(&text, &launch, &mut buffers).unwrap();
    for rank in 0..2 {
        let other = (1 - rank) as f32;
        let more = other + 10.0;
        let wanted = [other, more, other, more, more, more, other].map(f32::to_bits);
        assert_eq!(buffers[1][8 * rank..][..7], wanted, "block {rank}");
    }
}

pub fn boxes() {
    for rank in 2..=5usize {
        // Boxes of 8 by 2 by 2 by 2 by 2 of tensors of 16 by 4 by 4 by 4 by 4, from (4, 1, 1, 1, 1) on.
        let corner = &"4, 1, 1, 1, 1"[..3 * rank - 2];
        let load = format!(
            "cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        );
        let count = 8 << (rank - 1);
        // The two-dimensional box goes back to the corner of the tensor.
        let back = "fence.proxy.async.shared::cta; @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group
             [%d20, {0, 2}], [%r90]; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;";
        let text = kernel(
            3,
            &format!(
                ".shared .align 128 .b8 room[512]; .shared .align 8 .b64 bar; mov.u32 %r90, room; mov.u32 %r91, bar;
                 mov.u32 %r1, %tid.x; ld.param.u64 %d20, [p0]; ld.param.u64 %d21, [p1]; setp.eq.u32 %p1, %r1, 0;
                 mov.u32 %r4, 1; @!%p1 bra READY; mbarrier.init.shared::cta.b64 [%r91], %r4;
                 fence.proxy.async.shared::cta; prefetch.tensormap [%d20];
                 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], {};
                 {load} [%r90], [%d20, {{{corner}}}], [%r91]; READY: bar.sync 0;
                 W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r91], 0; @!%p2 bra W;
                 mad.lo.s32 %r5, %r1, 4, %r90; ld.shared.u32 %r6, [%r5]; mad.wide.u32 %d22, %r1, 4, %d21;
                 st.global.u32 [%d22], %r6; {}",
                4 * count,
                if rank == 2 { back } else { "" }
            ),
        );
        let size = 16 << (2 * (rank - 1));
        let launch = threads(count as u32);
        let mut buffers = [vec![0; 32], vec![0; count], (0..size as u32).collect()];
        execute_prepared(&text, &launch, &mut buffers, |addresses, buffers| {
            let map = TensorMap {
                address: addresses[2],
                kind: 2,
                sizes: [16, 4, 4, 4, 4][..rank].to_vec(),
                strides: [64, 256, 1024, 4096][..rank - 1].to_vec(),
                box_sizes: [8, 2, 2, 2, 2][..rank].to_vec(),
                swizzle: 0,
                fills_nan: false,
            };
            for (word, part) in buffers[0]
                .iter_mut()
                .zip(map.encode().unwrap().chunks_exact(4))
            {
                *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
            }
        })
        .unwrap();
        let element = |at: usize| {
            let outer =
                (1..rank).map(|axis| ((at >> (axis + 2) & 1) + 1) * (16 << (2 * (axis - 1))));
            (4 + at % 8 + outer.sum::<usize>()) as u32
        };
        for (at, word) in buffers[1].iter().enumerate() {
            assert_eq!(*word, element(at), "{rank} dimensions, {at}");
        }
        if rank == 2 {
            for at in 0..16 {
                assert_eq!(
                    buffers[2][(2 + at / 8) * 16 + at % 8],
                    element(at),
                    "stored {at}"
                );
            }
        }
    }
    // Copies of threads, with a hint and without.
    for form in [
        "cp.async.cg.shared.global",
        "cp.async.cg.shared.global.L2::128B",
    ] {
        let out = of_threads(
            4,
            1,
            &format!(
                ".shared .align 16 .b8 room[64]; mov.u32 %r90, room; mad.lo.s32 %r2, %r1, 16, %r90;
                 mad.wide.u32 %d1, %r1, 16, %d20; {form} [%r2], [%d1], 16; cp.async.commit_group;
                 cp.async.wait_group 0; ld.shared.u32 %r20, [%r2+8];"
            ),
        );
        assert_eq!(out, [2, 6, 10, 14], "{form}");
    }
    // A bulk copy.
    let out = of_threads(
        1,
        1,
        ".shared .align 16 .b8 room[64]; .shared .align 8 .b64 bar; mov.u32 %r90, room; mov.u32 %r91, bar;
         mov.u32 %r4, 1; mbarrier.init.shared::cta.b64 [%r91], %r4; fence.proxy.async.shared::cta;
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 64;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%d20], 64, [%r91];
         W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r91], 0; @!%p2 bra W; ld.shared.u32 %r20, [%r90+60];",
    );
    assert_eq!(out, [15]);
    // An mbarrier that all threads arrive at.
    let out = of_threads(
        64,
        1,
        ".shared .align 8 .b64 bar; .shared .align 4 .b32 word; mov.u32 %r91, bar; mov.u32 %r90, word;
         setp.eq.u32 %p1, %r1, 0; mov.u32 %r4, 64; @%p1 mbarrier.init.shared::cta.b64 [%r91], %r4; bar.sync 0;
         setp.eq.u32 %p2, %r1, 63; @%p2 st.shared.u32 [%r90], 9; mbarrier.arrive.shared::cta.b64 _, [%r91];
         W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r91], 0; @!%p3 bra W; ld.shared.u32 %r20, [%r90];",
    );
    assert_eq!(out, [9; 64]);
}

/// Each of two blocks loads half of a box to both, and tells both when it has read all of it.
pub fn boxes_for_several_blocks() {
    let text = kernel(
        3,
        ".shared .align 128 .b8 room[256]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
         mov.u32 %r90, room; mov.u32 %r91, full; mov.u32 %r92, empty; mov.u32 %r1, %tid.x;
         mov.u32 %r2, %cluster_ctarank; ld.param.u64 %d20, [p0]; ld.param.u64 %d21, [p1];
         setp.eq.u32 %p1, %r1, 0; mov.u32 %r4, 1; mov.u32 %r5, 64;
         @%p1 mbarrier.init.shared::cta.b64 [%r91], %r4; @%p1 mbarrier.init.shared::cta.b64 [%r92], %r5;
         fence.mbarrier_init.release.cluster; barrier.cluster.arrive.release.aligned;
         barrier.cluster.wait.acquire.aligned; @!%p1 bra READY;
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 128; mad.lo.s32 %r6, %r2, 128, %r90; add.s32 %r7, %r2, 1;
         mov.u16 %h1, 3; mov.u32 %r8, 4; mov.u32 %r9, 1;
         cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
         [%r6], [%d20, {%r8, %r7, %r9}], [%r91], %h1; READY:
         W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r91], 0; @!%p2 bra W;
         shr.u32 %r14, %r1, 4; and.b32 %r15, %r1, 15; mad.lo.s32 %r10, %r14, 128, %r90; mad.lo.s32 %r10, %r15, 4, %r10;
         ld.shared.u32 %r11, [%r10];
         mapa.shared::cluster.u32 %r12, %r92, 0; mbarrier.arrive.shared::cluster.b64 _, [%r12];
         mapa.shared::cluster.u32 %r12, %r92, 1; mbarrier.arrive.shared::cluster.b64 _, [%r12];
         E: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r92], 0; @!%p3 bra E;
         mad.lo.s32 %r13, %r2, 32, %r1; mad.wide.u32 %d22, %r13, 4, %d21; st.global.u32 [%d22], %r11;",
    );
    let launch = Launch {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..threads(32)
    };
    let mut buffers = [vec![0; 32], vec![0; 64], (0..256).collect()];
    execute_prepared(&text, &launch, &mut buffers, |addresses, buffers| {
        let map = TensorMap {
            address: addresses[2],
            kind: 2,
            sizes: vec![16, 4, 4],
            strides: vec![64, 256],
            box_sizes: vec![8, 1, 2],
            swizzle: 0,
            fills_nan: false,
        };
        buffers[0].copy_from_slice(&words_of(&map.encode().unwrap()));
    })
    .unwrap();
    for (at, word) in buffers[1].iter().enumerate() {
        // From (4, 1, 1) on: halves are rows, and each has two planes.
        let (column, plane, row) = (at % 8, at / 8 % 2, at / 16 % 2);
        let element = 4 + column + 16 * (1 + row) + 64 * (1 + plane);
        assert_eq!(*word, element as u32, "{at}");
    }
}

fn small(at: usize) -> f32 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 29) as f32 - 3.0
}

type Encode = fn(f32) -> u32;

fn e4m3(value: f32) -> u32 {
    E4M3.encode(value.into(), Rounding::NearestEven, true)
}

fn bytes_of(rows: usize, depth: usize, bits: usize, encode: Encode) -> Vec<u8> {
    let elements =
        (0..rows * depth).flat_map(|at| encode(small(at)).to_le_bytes()[..bits / 8].to_vec());
    elements.collect()
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    let parts = bytes.chunks_exact(4);
    parts
        .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
        .collect()
}

pub fn fragments() {
    let kinds: [(&str, usize, usize, Encode); 3] = [
        ("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, f32_to_bf16),
        ("m16n8k16.row.col.f32.f16.f16.f32", 16, 16, f32_to_f16),
        ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 8, e4m3),
    ];
    for (form, depth, bits, encode) in kinds {
        // Rows of 32 bytes: 16 of A, then 8 of B. A thread holds 4 bytes of a row, or of the row 8 below.
        let room = words_of(&bytes_of(24, depth, bits, encode));
        let text = kernel(
            2,
            &format!(
                "mov.u32 %r1, %tid.x; ld.param.u64 %d20, [p0]; ld.param.u64 %d21, [p1]; shr.u32 %r2, %r1, 2;
                 and.b32 %r3, %r1, 3; mul.lo.s32 %r4, %r2, 32; mad.lo.s32 %r4, %r3, 4, %r4; cvt.u64.u32 %d1, %r4;
                 add.s64 %d1, %d1, %d20; ld.global.u32 %r10, [%d1]; ld.global.u32 %r11, [%d1+256];
                 ld.global.u32 %r12, [%d1+16]; ld.global.u32 %r13, [%d1+272]; ld.global.u32 %r14, [%d1+512];
                 ld.global.u32 %r15, [%d1+528]; mov.f32 %f1, 0f3F800000;
                 mma.sync.aligned.{form} {{%f3,%f4,%f5,%f6}}, {{%r10,%r11,%r12,%r13}}, {{%r14,%r15}},
                 {{%f1,%f1,%f1,%f1}};
                 mad.wide.u32 %d2, %r1, 16, %d21; st.global.v4.f32 [%d2], {{%f3,%f4,%f5,%f6}};"
            ),
        );
        let mut buffers = [room, vec![0; 128]];
        execute(&text, &threads(32), &mut buffers).unwrap();
        for (at, bits) in buffers[1].iter().enumerate() {
            let (lane, register) = (at / 4, at % 4);
            let (row, column) = (lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2);
            let value = |row: usize, k: usize| small(row * depth + k);
            let sum: f32 = (0..depth)
                .map(|k| value(row, k) * value(16 + column, k))
                .sum();
            assert_eq!(
                f32::from_bits(*bits),
                1.0 + sum,
                "{form}: row {row}, column {column}"
            );
        }
    }
    // Four matrices of eight rows of 16 bytes, loaded and stored again, transposed on either way.
    for (form, back) in [("", ""), (".trans", ""), ("", ".trans")] {
        let transposed = form != back;
        let out = of_threads(
            32,
            4,
            &format!(
                ".shared .align 16 .b8 room[512]; .shared .align 16 .b8 copy[512]; mov.u32 %r90, room;
                 mov.u32 %r91, copy; mul.lo.s32 %r2, %r1, 16; add.s32 %r3, %r90, %r2; add.s32 %r4, %r91, %r2;
                 mad.wide.u32 %d1, %r1, 16, %d20; ld.global.v4.u32 {{%r10,%r11,%r12,%r13}}, [%d1];
                 st.shared.v4.u32 [%r3], {{%r10,%r11,%r12,%r13}}; bar.warp.sync -1;
                 ldmatrix.sync.aligned.m8n8.x4{form}.shared.b16 {{%r14,%r15,%r16,%r17}}, [%r3];
                 stmatrix.sync.aligned.m8n8.x4{back}.shared.b16 [%r4], {{%r14,%r15,%r16,%r17}}; bar.warp.sync -1;
                 ld.shared.v4.u32 {{%r20,%r21,%r22,%r23}}, [%r4];"
            ),
        );
        let half = |row: usize, column: usize| {
            // Words count up: their low halves are numbers, the high ones 0.
            let word = row * 4 + column / 2;
            if column.is_multiple_of(2) {
                word as u32
            } else {
                0
            }
        };
        for (row, words) in out.chunks(4).enumerate() {
            for column in 0..8 {
                let (matrix, within) = (row / 8 * 8, row % 8);
                let wanted = if transposed {
                    half(matrix + column, within)
                } else {
                    half(row, column)
                };
                let found = words[column / 2] >> (column % 2 * 16) & 0xffff;
                assert_eq!(found, wanted, "{form}{back} row {row}, column {column}");
            }
        }
    }
}

pub fn warpgroups() {
    let halves: Vec<usize> = (1..=16)
        .map(|step| 16 * step)
        .filter(|width| *width != 240)
        .collect();
    let kinds: [(&str, usize, usize, Encode, &[usize]); 3] = [
        ("k16.f32.bf16.bf16", 16, 16, f32_to_bf16, &halves),
        ("k16.f32.f16.f16", 16, 16, f32_to_f16, &halves),
        (
            "k32.f32.e4m3.e4m3",
            32,
            8,
            e4m3,
            &[16, 32, 48, 64, 128, 160, 192, 256],
        ),
    ];
    for (form, depth, bits, encode, widths) in kinds {
        for columns in widths {
            // Rows of 32 bytes in cores of 8 rows of 16 bytes: 64 rows of A, then B.
            let plain = bytes_of(64 + columns, depth, bits, encode);
            let mut room = vec![0; 2048 + 32 * columns];
            for (at, byte) in plain.iter().enumerate() {
                let (row, within) = (at / 32, at % 32);
                let (start, local, leading) = if row < 64 {
                    (0, row, 1024)
                } else {
                    (2048, row - 64, 16 * columns)
                };
                room[start
                    + within / 16 * leading
                    + local / 8 * 128
                    + local % 8 * 16
                    + within % 16] = *byte;
            }
            let descriptor = |start: u64, leading: u64| start >> 4 | leading >> 4 << 16 | 8 << 32;
            let sums: Vec<String> = (0..columns / 2).map(|at| format!("%f{at}")).collect();
            let zero: String = sums
                .iter()
                .map(|sum| format!("mov.f32 {sum}, 0f3F800000;"))
                .collect();
            let stores: String = sums
                .iter()
                .enumerate()
                .map(|(at, sum)| format!("st.global.f32 [%d9+{}], {sum};", 4 * at))
                .collect();
            let tail = if depth == 16 { ", 0, 0" } else { "" };
            let text = kernel(
                2,
                &format!(
                    ".shared .align 1024 .b8 room[10240]; mov.u32 %r90, room; mov.u32 %r1, %tid.x;
                     ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r2, %r1;
                     LOOP: mad.wide.u32 %d3, %r2, 4, %d1; ld.global.u32 %r3, [%d3]; mad.lo.s32 %r4, %r2, 4, %r90;
                     st.shared.u32 [%r4], %r3; add.s32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, {};
                     @%p1 bra LOOP; fence.proxy.async; bar.sync 0; cvt.u64.u32 %d5, %r90; shr.u64 %d5, %d5, 4;
                     mov.b64 %d6, {}; add.s64 %d6, %d6, %d5; mov.b64 %d7, {}; add.s64 %d7, %d7, %d5; {zero}
                     wgmma.fence.sync.aligned;
                     wgmma.mma_async.sync.aligned.m64n{columns}{form} {{{}}}, %d6, %d7, 1, 1, 1{tail};
                     wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
                     mad.wide.u32 %d9, %r1, {}, %d2; {stores}",
                    room.len() / 4,
                    descriptor(0, 1024),
                    descriptor(2048, 16 * *columns as u64),
                    sums.join(","),
                    2 * columns
                ),
            )
            .replace("%f<99>", "%f<150>");
            let mut buffers = [words_of(&room), vec![0; 64 * columns]];
            execute(&text, &threads(128), &mut buffers).unwrap();
            let value = |row: usize, k: usize| small(row * depth + k);
            for (at, bits) in buffers[1].iter().enumerate() {
                let (thread, register) = (at / (columns / 2), at % (columns / 2));
                let row = thread / 32 * 16 + thread % 32 / 4 + register / 2 % 2 * 8;
                let column = register / 4 * 8 + thread % 4 * 2 + register % 2;
                let sum: f32 = (0..depth)
                    .map(|k| value(row, k) * value(64 + column, k))
                    .sum();
                assert_eq!(
                    f32::from_bits(*bits),
                    1.0 + sum,
                    "{form}: row {row}, column {column}"
                );
            }
        }
    }
}

#[test]
fn every_form_is_exact() {
    warps();
    blocks();
    boxes();
    boxes_for_several_blocks();
    fragments();
    warpgroups();
}
