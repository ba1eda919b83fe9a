//! A product of two blocks: each loads its half of both operands, one issues it, both learn that it is done.

use super::{execute_prepared, kernel, threads, SCHEDULES};
use crate::number::f32_to_bf16;
use crate::{Launch, TensorMap};

fn small(at: usize) -> f32 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 29) as f32 - 3.0
}

/// 256 rows and 32 columns of depth 16: rows of 32 bytes, A in p2, B in p3; sums to p4.
fn text() -> String {
    let registers: Vec<String> = (0..32).map(|n| format!("%r{}", n + 40)).collect();
    let stores: String = (0..32)
        .map(|n| format!("st.global.u32 [%d9+{}], %r{};\n", 4 * n, n + 40))
        .collect();
    let descriptor = |start: u64, leading: u64| start >> 4 | leading >> 4 << 16 | 8 << 32 | 1 << 46;
    let load = "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2";
    let bits = 1 << 4 | 1 << 7 | 1 << 10 | (32 >> 3) << 17 | (256 >> 4) << 24;
    kernel(
        5,
        &format!(
            ".shared .align 1024 .b8 room[8192]; .shared .align 8 .b64 full; .shared .align 8 .b64 done;
             .shared .align 8 .b64 left; .shared .align 4 .b32 base; mov.u32 %r90, room; mov.u32 %r91, full;
             mov.u32 %r92, done; mov.u32 %r93, left; mov.u32 %r94, base; mov.u32 %r1, %tid.x;
             mov.u32 %r2, %cluster_ctarank; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d4, [p4];
             setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; setp.eq.u32 %p3, %r2, 0; mov.u32 %r5, 32;
             @!%p2 bra MADE; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r94], %r5;
             tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; MADE: mov.u32 %r6, 1; mov.u32 %r10, 2;
             @!%p1 bra READY; mbarrier.init.shared::cta.b64 [%r91], %r6; mbarrier.init.shared::cta.b64 [%r92], %r6;
             mbarrier.init.shared::cta.b64 [%r93], %r10; fence.mbarrier_init.release.cluster; fence.proxy.async;
             READY: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             ld.shared.u32 %r7, [%r94]; @!%p1 bra WAIT;
             and.pred %p4, %p1, %p3; @%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 9216;
             mov.u32 %r11, 0; mapa.shared::cluster.u32 %r12, %r91, %r11; mul.lo.s32 %r13, %r2, 128;
             mul.lo.s32 %r14, %r2, 16; add.s32 %r15, %r90, 4096;
             {load} [%r90], [%d1, {{%r11, %r13, %r11}}], [%r12]; {load} [%r15], [%d2, {{%r11, %r14, %r11}}], [%r12];
             @!%p4 bra WAIT;
             FULL: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r91], 0; @!%p5 bra FULL;
             cvt.u64.u32 %d5, %r90; shr.u64 %d5, %d5, 4; mov.b64 %d6, {}; add.s64 %d6, %d6, %d5;
             mov.b64 %d7, {}; add.s64 %d7, %d7, %d5; mov.u32 %r8, {bits};
             tcgen05.mma.cta_group::2.kind::f16 [%r7], %d6, %d7, %r8, 0; mov.b16 %h1, 3;
             tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r92], %h1;
             WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r92], 0; @!%p5 bra WAIT;
             tcgen05.fence::after_thread_sync; shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21; add.u32 %r16, %r7, %r9;
             tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{}}}, [%r16]; tcgen05.wait::ld.sync.aligned;
             mad.lo.s32 %r17, %r2, 128, %r1; mad.wide.u32 %d9, %r17, 128, %d4; {stores}
             bar.sync 0; @!%p1 bra OVER; mov.u32 %r11, 0; mapa.shared::cluster.u32 %r18, %r93, %r11;
             mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r18];
             OVER: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             @!%p2 bra GONE; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r7, %r5; GONE:",
            descriptor(0, 2048),
            descriptor(4096, 256),
            registers.join(",")
        ),
    )
}

#[test]
pub fn a_product_of_two_blocks() {
    let value = |row: usize, k: usize| small(row * 16 + k);
    let halves = |first: usize, rows: usize| -> Vec<u32> {
        let words = (0..rows * 8).map(|at| (first + at / 8, at % 8 * 2));
        let pair = |(row, k)| f32_to_bf16(value(row, k)) | f32_to_bf16(value(row, k + 1)) << 16;
        words.map(pair).collect()
    };
    for schedule in SCHEDULES {
        let mut buffers = [
            vec![0; 32],
            vec![0; 32],
            halves(0, 256),
            halves(256, 32),
            vec![0; 256 * 32],
        ];
        let launch = Launch {
            grid: [2, 1, 1],
            cluster: [2, 1, 1],
            schedule,
            ..threads(128)
        };
        execute_prepared(&text(), &launch, &mut buffers, |addresses, buffers| {
            for (at, rows) in [(0, 256), (1, 32)] {
                // Chunks of 16 bytes of all rows, one chunk after the other.
                let map = TensorMap {
                    address: addresses[2 + at],
                    kind: 10,
                    sizes: vec![8, rows, 2],
                    strides: vec![32, 16],
                    box_sizes: vec![8, rows as u32 / 2, 2],
                    swizzle: 0,
                    fills_nan: false,
                };
                let bytes = map.encode().unwrap();
                for (word, part) in buffers[at].iter_mut().zip(bytes.chunks_exact(4)) {
                    *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
                }
            }
        })
        .unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        for (at, bits) in buffers[4].iter().enumerate() {
            let (row, column) = (at / 32, at % 32);
            let sum: f32 = (0..16)
                .map(|k| value(row, k) * value(256 + column, k))
                .sum();
            assert_eq!(f32::from_bits(*bits), sum, "row {row}, column {column}");
        }
    }
}
