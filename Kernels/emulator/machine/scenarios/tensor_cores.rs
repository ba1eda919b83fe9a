//! tcgen05 against plain sums: the layouts of PTX's documentation, written out element by element.

use super::{execute, kernel, late, threads, SCHEDULES};
use crate::launch::Queue;
use crate::number::{f32_to_bf16, Rounding, E2M1, E4M3};
use crate::{Launch, Schedule};

fn small(at: usize) -> f32 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 29) as f32 - 3.0
}

pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
        .collect()
}

/// A descriptor of rows of 32 bytes in two columns of cores, without a swizzle.
pub fn descriptor(start: u64, leading: u64) -> u64 {
    start >> 4 | (leading >> 4) << 16 | (128 >> 4) << 32 | 1 << 46
}

/// Puts a row's 32 bytes of depth where such a descriptor has them.
pub fn place(bytes: &mut [u8], start: usize, leading: usize, row: usize, at: usize, value: u8) {
    bytes[start + at / 16 * leading + row / 8 * 128 + row % 8 * 16 + at % 16] = value;
}

/// 128 rows, 32 columns: room of 8 KiB from p0, sums to p1 as [128][32].
pub fn product(mma: &str, descriptor_bits: u32, before: &str) -> String {
    let registers: Vec<String> = (0..32).map(|n| format!("%r{}", n + 40)).collect();
    let stores: String = (0..32)
        .map(|n| format!("st.global.u32 [%d9+{}], %r{};\n", 4 * n, n + 40))
        .collect();
    let (a, b) = (descriptor(0, 2048), descriptor(4096, 512));
    kernel(
        2,
        &format!(
            ".shared .align 1024 .b8 room[8192]; .shared .align 8 .b64 bar; .shared .align 4 .b32 base;
             mov.u32 %r90, room; mov.u32 %r91, bar; mov.u32 %r92, base; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];
             mov.u32 %r2, %r1; LOOP: mad.wide.u32 %d3, %r2, 4, %d1; ld.global.u32 %r3, [%d3];
             mad.lo.u32 %r4, %r2, 4, %r90;
             st.shared.u32 [%r4], %r3; add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, 2048; @%p1 bra LOOP;
             setp.lt.u32 %p2, %r1, 32; @!%p2 bra MADE; mov.u32 %r5, 64;
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r92], %r5;
             tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
             MADE: setp.eq.u32 %p3, %r1, 0; @!%p3 bra READY; mov.u32 %r6, 1;
             mbarrier.init.shared::cta.b64 [%r91], %r6;
             READY: fence.proxy.async; bar.sync 0; ld.shared.u32 %r7, [%r92];
             @!%p3 bra WAIT;
             cvt.u64.u32 %d5, %r90; shr.u64 %d5, %d5, 4; mov.b64 %d6, {a}; add.s64 %d6, %d6, %d5;
             mov.b64 %d7, {b}; add.s64 %d7, %d7, %d5;
             mov.u32 %r8, {descriptor_bits}; {before} mov.pred %p4, 0; {mma} mov.pred %p4, 1; {mma}
             tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r91];
             WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra WAIT;
             tcgen05.fence::after_thread_sync; shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21; add.u32 %r10, %r7, %r9;
             tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{}}}, [%r10]; tcgen05.wait::ld.sync.aligned;
             ld.param.u64 %d8, [p1]; mad.wide.u32 %d9, %r1, 128, %d8; {stores}
             bar.sync 0; @!%p2 bra GONE; mov.u32 %r5, 64;
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5; GONE:",
            registers.join(",")
        ),
    )
    .replace(".reg .b32 %r<99>", ".reg .b32 %r<120>")
}

fn check(text: &str, room: &[u8], wanted: impl Fn(usize, usize) -> f32) {
    let survives = |text: &str, schedule: Schedule| {
        let mut buffers = [words(room), vec![0; 128 * 32]];
        let result = execute(
            text,
            &Launch {
                schedule,
                ..threads(128)
            },
            &mut buffers,
        );
        result.map(|report| {
            // The second product adds to the first.
            let counters = &report.counters;
            assert_eq!((counters.sums, counters.launch.tensor_columns), (1, 64));
            (0..4096).all(|at| f32::from_bits(buffers[1][at]) == 2.0 * wanted(at / 32, at % 32))
        })
    };
    for schedule in SCHEDULES {
        assert!(survives(text, schedule).unwrap(), "{schedule:?}");
    }
    let all_late = Schedule::Late { seed: 1 };
    let no_wait = text.replace("tcgen05.wait::ld.sync.aligned;", "");
    for schedule in [all_late, late(Queue::TensorLoads)] {
        assert!(
            !survives(&no_wait, schedule).unwrap_or(false),
            "a missing wait for the load shows"
        );
    }
    let no_wait = text.replace("@!%p1 bra WAIT;", "");
    for schedule in [all_late, late(Queue::Products)] {
        assert!(
            !survives(&no_wait, schedule).unwrap_or(false),
            "a missing wait for the product shows"
        );
    }
    let leak = text.replace(
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5;",
        "",
    );
    assert!(survives(&leak, all_late)
        .unwrap_err()
        .to_string()
        .contains("without freeing its tensor memory"));
}

/// 128 rows and 32 columns of a kind, with formats of A and B.
pub fn instruction(a: u32, b: u32, rows_at: u32) -> u32 {
    1 << 4 | a << 7 | b << 10 | (32 >> 3) << 17 | rows_at
}

#[test]
fn halves() {
    let value = |row: usize, k: usize| small(row * 16 + k);
    let mut room = vec![0; 8192];
    for (row, k) in (0..160).flat_map(|row| (0..16).map(move |k| (row, k))) {
        let bits = f32_to_bf16(value(row, k)).to_le_bytes();
        let (start, leading, local) = if row < 128 {
            (0, 2048, row)
        } else {
            (4096, 512, row - 128)
        };
        place(&mut room, start, leading, local, 2 * k, bits[0]);
        place(&mut room, start, leading, local, 2 * k + 1, bits[1]);
    }
    let text = product(
        "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;",
        instruction(1, 1, 8 << 24),
        "",
    );
    check(&text, &room, |row, column| {
        (0..16)
            .map(|k| value(row, k) * value(128 + column, k))
            .sum()
    });
}

#[test]
fn commits_are_for_what_their_thread_issued() {
    let room = vec![0; 8192];
    let mma = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    let text = product(mma, instruction(1, 1, 8 << 24), "");
    let commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r91];";
    let survives = |thread: u32| {
        let text = text
            .replace(commit, "")
            .replace(
                "WAIT:",
                &format!("WAIT: bar.sync 0; setp.eq.u32 %p9, %r1, {thread}; @%p9 {commit} POLL:"),
            )
            .replace(
                "bra WAIT;\n             tcgen05.fence",
                "bra POLL; tcgen05.fence",
            );
        assert!(text.contains("@!%p1 bra POLL;"), "{text}");
        SCHEDULES.iter().all(|schedule| {
            let mut buffers = [words(&room), vec![1; 128 * 32]];
            let launch = Launch {
                schedule: *schedule,
                ..threads(128)
            };
            execute(&text, &launch, &mut buffers).is_ok() && buffers[1].iter().all(|sum| *sum == 0)
        })
    };
    assert!(survives(0));
    assert!(!survives(1), "of the same warp");
    assert!(!survives(32), "of another warp");
}

#[test]
fn bytes_and_narrower() {
    // A of e4m3; B of e2m1, 16 elements at the start of each 16 bytes.
    let value = |row: usize, k: usize| small(row * 32 + k);
    let narrow = |row: usize, k: usize| E2M1.decode((row * 7 + k * 3) as u32 & 15);
    let mut room = vec![0; 8192];
    for (row, k) in (0..128).flat_map(|row| (0..32).map(move |k| (row, k))) {
        place(
            &mut room,
            0,
            2048,
            row,
            k,
            E4M3.encode(value(row, k).into(), Rounding::NearestEven, true) as u8,
        );
    }
    for (row, k) in (0..32).flat_map(|row| (0..32).step_by(2).map(move |k| (row, k))) {
        let pair = (row * 7 + k * 3) & 15 | ((row * 7 + (k + 1) * 3) & 15) << 4;
        place(
            &mut room,
            4096,
            512,
            row,
            k / 16 * 16 + k % 16 / 2,
            pair as u8,
        );
    }
    let text = product(
        "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r7], %d6, %d7, %r8, %p4;",
        instruction(0, 5, 8 << 24),
        "",
    );
    check(&text, &room, |row, column| {
        (0..32).map(|k| value(row, k) * narrow(column, k)).sum()
    });
}

/// Copies scale factors of rows 0 to 127 and columns 0 to 31 into columns 32 to 39 of tensor memory.
const SCALES: &str = "add.u32 %r93, %r7, 32; add.u32 %r94, %r7, 36; mov.b64 %d20, 70368744177664;
add.s64 %d20, %d20, %d5; add.s64 %d20, %d20, 320;
    add.s64 %d21, %d20, 32; mov.b64 %d22, 34359738368; add.s64 %d20, %d20, %d22; add.s64 %d21, %d21, %d22;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r93], %d20; tcgen05.cp.cta_group::1.32x128b.warpx4 [%r94], %d21;";

// Rows r, r + 32, r + 64, r + 96 lie in the four words of 16-byte row r.
fn put_scales(room: &mut [u8], scale: impl Fn(usize, usize) -> u8) {
    for (row, part) in (0..128).flat_map(|row| (0..4).map(move |part| (row, part))) {
        room[5120 + row % 32 * 16 + row / 32 * 4 + part] = scale(row, part);
    }
    for (row, part) in (0..32).flat_map(|row| (0..4).map(move |part| (row, part))) {
        room[5632 + row * 16 + part] = scale(200 + row, part);
    }
}

#[test]
fn bytes_with_a_scale_for_32() {
    let value = |row: usize, k: usize| small(row * 32 + k);
    let exponent = |row: usize, part: usize| 125 + (row + part) % 5;
    let mut room = vec![0; 8192];
    for (row, k) in (0..160).flat_map(|row| (0..32).map(move |k| (row, k))) {
        let (start, leading, local) = if row < 128 {
            (0, 2048, row)
        } else {
            (4096, 512, row - 128)
        };
        place(
            &mut room,
            start,
            leading,
            local,
            k,
            E4M3.encode(value(row, k).into(), Rounding::NearestEven, true) as u8,
        );
    }
    put_scales(&mut room, |row, part| exponent(row, part) as u8);
    // Scale factors 2 of A and 1 of B.
    let bits = (instruction(0, 0, 1 << 27) & !(3 << 4)) | 1 << 4 | 1 << 23 | 2 << 29;
    let mma = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X
        [%r7], %d6, %d7, %r8, [%r93], [%r94], %p4;";
    let scale = |row: usize, part: usize| 2f32.powi(exponent(row, part) as i32 - 127);
    check(&product(mma, bits, SCALES), &room, |row, column| {
        (0..32)
            .map(|k| value(row, k) * value(128 + column, k))
            .sum::<f32>()
            * scale(row, 2)
            * scale(200 + column, 1)
    });
    // Something else in one quarter of the lanes.
    let wrong = format!("{SCALES} tcgen05.cp.cta_group::1.4x256b [%r93], %d6;");
    let mut buffers = [words(&room), vec![0; 4096]];
    let error = execute(&product(mma, bits, &wrong), &threads(128), &mut buffers).unwrap_err();
    let words = "scale factors in lanes 0 and 32 of column 32 differ";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn four_bits_with_a_scale_for_16() {
    let pattern = |row: usize, k: usize| (row * 5 + k * 7 + k / 16) & 15;
    let value = |row: usize, k: usize| E2M1.decode(pattern(row, k) as u32);
    // Powers of two in e4m3, so that every sum is exact.
    let scale_bits = |row: usize, part: usize| (0x30 + 8 * ((row + 2 * part) % 3)) as u8;
    let mut room = vec![0; 8192];
    for (row, k) in (0..160).flat_map(|row| (0..64).step_by(2).map(move |k| (row, k))) {
        let (start, leading, local) = if row < 128 {
            (0, 2048, row)
        } else {
            (4096, 512, row - 128)
        };
        place(
            &mut room,
            start,
            leading,
            local,
            k / 2,
            (pattern(row, k) | pattern(row, k + 1) << 4) as u8,
        );
    }
    put_scales(&mut room, scale_bits);
    let bits = instruction(1, 1, 1 << 27) & !(3 << 4);
    let mma = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X
        [%r7], %d6, %d7, %r8, [%r93], [%r94], %p4;";
    let scale = |row: usize, part: usize| E4M3.decode(scale_bits(row, part).into());
    check(&product(mma, bits, SCALES), &room, |row, column| {
        (0..64)
            .map(|k| {
                value(row, k)
                    * value(128 + column, k)
                    * scale(row, k / 16)
                    * scale(200 + column, k / 16)
            })
            .sum()
    });
}

#[test]
fn four_bits_with_a_scale_for_32() {
    let pattern = |row: usize, k: usize| (row * 3 + k * 5 + k / 32) & 15;
    let value = |row: usize, k: usize| E2M1.decode(pattern(row, k) as u32);
    let exponent = |row: usize, part: usize| 125 + (row + 3 * part) % 5;
    let mut room = vec![0; 8192];
    for (row, k) in (0..160).flat_map(|row| (0..64).step_by(2).map(move |k| (row, k))) {
        let (start, leading, local) = if row < 128 {
            (0, 2048, row)
        } else {
            (4096, 512, row - 128)
        };
        let pair = pattern(row, k) | pattern(row, k + 1) << 4;
        place(&mut room, start, leading, local, k / 2, pair as u8);
    }
    put_scales(&mut room, |row, part| exponent(row, part) as u8);
    let mma = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X
        [%r7], %d6, %d7, %r8, [%r93], [%r94], %p4;";
    let scale = |row: usize, part: usize| 2f32.powi(exponent(row, part) as i32 - 127);
    // The scales start at byte 0 or 2 of A's words, and at the other of B's.
    for first in [0, 2] {
        let bits = (instruction(1, 1, 1 << 27) & !(3 << 4)) | 1 << 23;
        let bits = bits | (2 - first) << 4 | first << 29;
        check(&product(mma, bits, SCALES), &room, |row, column| {
            (0..64)
                .map(|k| {
                    let (of_a, of_b) = (first as usize + k / 32, 2 - first as usize + k / 32);
                    value(row, k)
                        * value(128 + column, k)
                        * scale(row, of_a)
                        * scale(200 + column, of_b)
                })
                .sum()
        });
    }
}

#[test]
fn what_is_not_a_product_is_refused() {
    let halves = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    let fours = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X
        [%r7], %d6, %d7, %r8, [%r93], [%r94], %p4;";
    let four_bits = (instruction(1, 1, 1 << 27) & !(3 << 4)) | 1 << 23;
    for (mma, bits, words) in [
        (halves, instruction(1, 1, 8 << 24) | 4, "sparse"),
        (halves, instruction(3, 1, 8 << 24), "operand format 3"),
        (
            halves,
            instruction(1, 1, 8 << 24) & !(1 << 4),
            "an accumulator of format 0",
        ),
        (halves, instruction(1, 1, 3 << 24), "48 rows"),
        (fours, four_bits | 1 << 15, "transposed"),
        (fours, four_bits | 1 << 16, "transposed"),
    ] {
        let text = product(mma, bits, "");
        let error = execute(&text, &threads(128), &mut [vec![0; 2048], vec![0; 4096]])
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
    let text = product(
        "tcgen05.mma.cta_group::1.kind::f16 [%r7+64], %d6, %d7, %r8, %p4;",
        instruction(1, 1, 8 << 24),
        "",
    );
    let error = execute(&text, &threads(128), &mut [vec![0; 2048], vec![0; 4096]])
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not allocated"), "{error}");
}

/// What other tests take for granted.
pub fn all() {
    halves();
    bytes_and_narrower();
    bytes_with_a_scale_for_32();
    four_bits_with_a_scale_for_16();
    four_bits_with_a_scale_for_32();
}
