//! Products of two blocks: each loads its half of both operands, one issues it, both learn that it is done.

use super::{execute_prepared, kernel, threads, SCHEDULES};
use crate::number::{f32_to_bf16, Rounding, E2M1, E4M3};
use crate::{Launch, TensorMap};

fn small(at: usize) -> f32 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 29) as f32 - 3.0
}

/// A kind of product of 32 bytes of depth.
struct Form {
    kind: &'static str,
    /// Of the instruction descriptor, besides its rows and columns.
    bits: u32,
    /// Bits of an element, and the elements that share a scale, if they do.
    width: usize,
    block: Option<usize>,
    /// From which byte of the words of scales on: A's and B's.
    first: (usize, usize),
    encode: fn(f32) -> u32,
    scale: fn(u8) -> f32,
}

impl Form {
    fn depth(&self) -> usize {
        256 / self.width
    }

    /// Four codes for each row of A, then for each column of B.
    fn code(&self, row: usize, part: usize) -> u8 {
        match self.block {
            // Powers of two in e4m3.
            Some(16) => 0x30 + 8 * ((row + 2 * part) % 3) as u8,
            _ => 125 + ((row + 3 * part) % 5) as u8,
        }
    }

    fn scale_of(&self, row: usize, first: usize, k: usize) -> f32 {
        self.block
            .map_or(1.0, |block| (self.scale)(self.code(row, first + k / block)))
    }
}

/// 256 rows and up to 32 columns: rows of 32 bytes, A in p2, B in p3; sums to p4 in rows of 32; each block's scales of
/// its rows and of all columns in p5.
fn text(form: &Form, columns: u32) -> String {
    let registers: Vec<String> = (0..32).map(|n| format!("%r{}", n + 40)).collect();
    let stores: String = (0..32)
        .map(|n| format!("st.global.u32 [%d9+{}], %r{};\n", 4 * n, n + 40))
        .collect();
    let descriptor = |start: u64, leading: u64| start >> 4 | leading >> 4 << 16 | 8 << 32 | 1 << 46;
    let load = "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2";
    let load_4d = load.replace("3d", "4d");
    let bits = form.bits | (columns >> 3) << 17 | (256 >> 4) << 24;
    let (copies, scales) = match form.block {
        Some(_) => (
            "mov.b64 %d10, 70403103916032; add.s64 %d10, %d10, %d5; add.s64 %d11, %d10, 320; add.s64 %d12, %d10, 352;
             add.s32 %r20, %r7, 32; add.s32 %r21, %r7, 36; tcgen05.cp.cta_group::2.32x128b.warpx4 [%r20], %d11;
             tcgen05.cp.cta_group::2.32x128b.warpx4 [%r21], %d12;",
            ", [%r20], [%r21]",
        ),
        None => ("", ""),
    };
    let kind = form.kind;
    let each = columns / 2;
    let expected = 2 * 32 * (128 + each);
    kernel(
        6,
        &format!(
            ".shared .align 1024 .b8 room[8192]; .shared .align 8 .b64 full; .shared .align 8 .b64 done;
             .shared .align 8 .b64 left; .shared .align 4 .b32 base; mov.u32 %r90, room; mov.u32 %r91, full;
             mov.u32 %r92, done; mov.u32 %r93, left; mov.u32 %r94, base; mov.u32 %r1, %tid.x;
             mov.u32 %r2, %cluster_ctarank; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d4, [p4];
             setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; setp.eq.u32 %p3, %r2, 0; mov.u32 %r5, 64;
             ld.param.u64 %d13, [p5]; mad.wide.u32 %d13, %r2, 1024, %d13; mad.wide.u32 %d13, %r1, 4, %d13;
             ld.global.u32 %r22, [%d13]; ld.global.u32 %r23, [%d13+512]; mad.lo.s32 %r24, %r1, 4, %r90;
             st.shared.u32 [%r24+5120], %r22; st.shared.u32 [%r24+5632], %r23; fence.proxy.async;
             @!%p2 bra MADE; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r94], %r5;
             tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; MADE: mov.u32 %r6, 1; mov.u32 %r10, 2;
             @!%p1 bra READY; mbarrier.init.shared::cta.b64 [%r91], %r6; mbarrier.init.shared::cta.b64 [%r92], %r6;
             mbarrier.init.shared::cta.b64 [%r93], %r10; fence.mbarrier_init.release.cluster; fence.proxy.async;
             READY: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             ld.shared.u32 %r7, [%r94]; @!%p1 bra WAIT;
             and.pred %p4, %p1, %p3; @%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], {expected};
             mov.u32 %r11, 0; mapa.shared::cluster.u32 %r12, %r91, %r11; mul.lo.s32 %r13, %r2, 128;
             mul.lo.s32 %r14, %r2, {each}; add.s32 %r15, %r90, 4096;
             {load} [%r90], [%d1, {{%r11, %r13, %r11}}], [%r12];
             {load_4d} [%r15], [%d2, {{%r11, %r14, %r11, %r11}}], [%r12];
             @!%p4 bra WAIT;
             FULL: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r91], 0; @!%p5 bra FULL;
             cvt.u64.u32 %d5, %r90; shr.u64 %d5, %d5, 4; mov.b64 %d6, {}; add.s64 %d6, %d6, %d5;
             mov.b64 %d7, {}; add.s64 %d7, %d7, %d5; mov.u32 %r8, {bits};
             {copies} tcgen05.mma.cta_group::2.kind::{kind} [%r7], %d6, %d7, %r8{scales}, 0; mov.b16 %h1, 3;
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
            descriptor(4096, 16 * u64::from(each)),
            registers.join(",")
        ),
    )
}

fn e4m3(value: f32) -> u32 {
    E4M3.encode(value.into(), Rounding::NearestEven, true)
}

fn e2m1(value: f32) -> u32 {
    E2M1.encode(value.into(), Rounding::NearestEven, true)
}

fn power(code: u8) -> f32 {
    2f32.powi(i32::from(code) - 127)
}

const FORMS: [Form; 6] = [
    Form {
        kind: "f16",
        bits: 1 << 4 | 1 << 7 | 1 << 10,
        width: 16,
        block: None,
        first: (0, 0),
        encode: f32_to_bf16,
        scale: power,
    },
    Form {
        kind: "f8f6f4",
        bits: 1 << 4,
        width: 8,
        block: None,
        first: (0, 0),
        encode: e4m3,
        scale: power,
    },
    Form {
        kind: "mxf8f6f4.block_scale.scale_vec::1X",
        bits: 1 << 23 | 1 << 4 | 3 << 29,
        width: 8,
        block: Some(32),
        first: (3, 1),
        encode: e4m3,
        scale: power,
    },
    Form {
        kind: "mxf4.block_scale.scale_vec::2X",
        bits: 1 << 23 | 1 << 7 | 1 << 10 | 2 << 4,
        width: 4,
        block: Some(32),
        first: (0, 2),
        encode: e2m1,
        scale: power,
    },
    Form {
        kind: "mxf4.block_scale.scale_vec::2X",
        bits: 1 << 23 | 1 << 7 | 1 << 10 | 2 << 29,
        width: 4,
        block: Some(32),
        first: (2, 0),
        encode: e2m1,
        scale: power,
    },
    Form {
        kind: "mxf4nvf4.block_scale.scale_vec::4X",
        bits: 1 << 7 | 1 << 10,
        width: 4,
        block: Some(16),
        first: (0, 0),
        encode: e2m1,
        scale: |code| E4M3.decode(code.into()),
    },
];

#[test]
pub fn products_of_two_blocks() {
    for form in &FORMS {
        // The fewest that a pair has, too.
        for columns in [16, 32] {
            product_of_two_blocks(form, columns);
        }
    }
}

fn product_of_two_blocks(form: &Form, columns: usize) {
    let depth = form.depth();
    // From -3 to 4, which every type has.
    let value = |row: usize, k: usize| small(row * depth + k);
    let packed = |first: usize, rows: usize| -> Vec<u32> {
        let each = 32 / form.width;
        let word = |at: usize| {
            let (row, start) = (first + at / 8, at % 8 * each);
            (0..each).fold(0, |word, at| {
                word | (form.encode)(value(row, start + at)) << (at * form.width)
            })
        };
        (0..rows * 8).map(word).collect()
    };
    // Rows r, r + 32, r + 64, r + 96 lie in the four words of 16-byte row r.
    let tile = |first: usize, rows: usize| -> Vec<u32> {
        let word = |at: usize| {
            let row = at % 4 * 32 + at / 4;
            let codes: [u8; 4] = std::array::from_fn(|part| match row < rows {
                true => form.code(first + row, part),
                false => 0xff,
            });
            u32::from_le_bytes(codes)
        };
        (0..128).map(word).collect()
    };
    let of_columns = tile(256, columns);
    let scales = [tile(0, 128), of_columns.clone(), tile(128, 128), of_columns].concat();
    for schedule in SCHEDULES {
        let mut buffers = [
            vec![0; 32],
            vec![0; 32],
            packed(0, 256),
            packed(256, columns),
            vec![0; 256 * 32],
            scales.clone(),
        ];
        let launch = Launch {
            grid: [2, 1, 1],
            cluster: [2, 1, 1],
            schedule,
            ..threads(128)
        };
        execute_prepared(
            &text(form, columns as u32),
            &launch,
            &mut buffers,
            |addresses, buffers| {
                for (at, rows) in [(0, 256), (1, columns as u64)] {
                    // Chunks of 16 bytes of all rows, one chunk after the other.
                    let map = TensorMap {
                        address: addresses[2 + at],
                        kind: 10,
                        sizes: [8, rows, 2, 1][..3 + at].to_vec(),
                        strides: [32, 16, 16][..2 + at].to_vec(),
                        box_sizes: [8, rows as u32 / 2, 2, 1][..3 + at].to_vec(),
                        swizzle: 0,
                        fills_nan: false,
                    };
                    let bytes = map.encode().unwrap();
                    for (word, part) in buffers[at].iter_mut().zip(bytes.chunks_exact(4)) {
                        *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
                    }
                }
            },
        )
        .unwrap_or_else(|error| panic!("{}, {schedule:?}: {error}", form.kind));
        for (at, bits) in buffers[4].iter().enumerate() {
            let (row, column) = (at / 32, at % 32);
            if column >= columns {
                continue;
            }
            let sum: f32 = (0..depth)
                .map(|k| {
                    let scale = form.scale_of(row, form.first.0, k)
                        * form.scale_of(256 + column, form.first.1, k);
                    value(row, k) * value(256 + column, k) * scale
                })
                .sum();
            assert_eq!(
                f32::from_bits(*bits),
                sum,
                "{}: row {row}, column {column}",
                form.kind
            );
        }
    }
}
