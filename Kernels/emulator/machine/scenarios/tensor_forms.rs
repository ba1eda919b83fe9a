//! Forms of tcgen05 beside the plain product, each against the layout that PTX's documentation gives.

use super::tensor_cores::{descriptor, place, product, words};
use super::{execute, kernel, threads, SCHEDULES};
use crate::Launch;

/// What `p1` holds after a kernel, the same under every schedule.
fn output(text: &str, room: &[u8], count: usize) -> Vec<u32> {
    let run = |schedule| {
        let mut buffers = [words(room), vec![0; count]];
        let launch = Launch {
            schedule,
            ..threads(128)
        };
        execute(text, &launch, &mut buffers)
            .unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        buffers[1].clone()
    };
    let mut found = SCHEDULES.map(run);
    assert!(found.iter().all(|other| *other == found[0]));
    std::mem::take(&mut found[0])
}

fn byte(row: usize, k: usize) -> u8 {
    (row * 31 + k * 17 + row * k) as u8
}

/// Rows of 32 bytes: 128 of A, then as many of B as there are columns.
fn bytes(columns: usize) -> Vec<u8> {
    let mut room = vec![0; 8192];
    for (row, k) in (0..128 + columns).flat_map(|row| (0..32).map(move |k| (row, k))) {
        let (start, leading, local) = if row < 128 {
            (0, 2048, row)
        } else {
            (4096, 16 * columns, row - 128)
        };
        place(&mut room, start, leading, local, k, byte(row, k));
    }
    room
}

fn whole(row: usize, column: usize) -> i32 {
    let term = |k: usize| i32::from(byte(row, k) as i8) * i32::from(byte(128 + column, k));
    (0..32).map(term).sum()
}

/// Signed rows, unsigned columns, sums of 32 bits.
fn integers(columns: u32, rows: u32) -> u32 {
    2 << 4 | 1 << 7 | columns >> 3 << 17 | rows >> 4 << 24
}

const MMA: &str = "tcgen05.mma.cta_group::1.kind::i8 [%r7], %d6, %d7, %r8, %p4;";

#[test]
fn integers_of_eight_bits() {
    let out = output(&product(MMA, integers(32, 128), ""), &bytes(32), 4096);
    for (at, sum) in out.iter().enumerate() {
        assert_eq!(*sum as i32, 2 * whole(at / 32, at % 32), "{at}");
    }
    // A collector changes nothing.
    let kept = MMA.replace("kind::i8", "kind::i8.collector::a::fill");
    assert_eq!(
        out,
        output(&product(&kept, integers(32, 128), ""), &bytes(32), 4096)
    );
    // Sums of singles for integers are refused.
    let text = product(MMA, integers(32, 128) & !(3 << 4) | 1 << 4, "");
    let error = execute(&text, &threads(128), &mut [vec![0; 2048], vec![0; 4096]]);
    assert!(error
        .unwrap_err()
        .to_string()
        .contains("an accumulator of format 1"));
}

#[test]
fn sums_that_saturate() {
    // The first product leaves the largest sum behind; the second adds to it.
    let fill = "mov.u32 %r95, 2147483600;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r95}; tcgen05.wait::st.sync.aligned;";
    let text = |bits: u32| {
        product(MMA, bits, "").replace("mov.pred %p4, 0;", "mov.pred %p4, 1;").replace(
            "READY: fence.proxy.async;",
            &format!(
                "READY: fence.proxy.async; bar.sync 0; ld.shared.u32 %r7, [%r92]; shr.u32 %r9, %r1, 5;
                 shl.b32 %r9, %r9, 21; add.u32 %r10, %r7, %r9; {fill} tcgen05.fence::before_thread_sync;"
            ),
        )
        .replace("@!%p3 bra WAIT;", "tcgen05.fence::after_thread_sync; @!%p3 bra WAIT;")
    };
    let sums = |saturates: bool, row: usize| {
        let add = |sum: i32| match saturates {
            true => sum.saturating_add(whole(row, 0)),
            false => sum.wrapping_add(whole(row, 0)),
        };
        add(add(2_147_483_600))
    };
    for (bits, saturates) in [(0, false), (8, true)] {
        let text = text(integers(32, 128) | bits);
        // Other columns hold what nobody wrote.
        let out = output(&text, &bytes(32), 4096);
        for row in 0..128 {
            assert_eq!(out[row * 32] as i32, sums(saturates, row), "row {row}");
        }
    }
}

#[test]
fn lanes_that_keep_what_they_have() {
    let masks = "mov.u32 %r80, 5; mov.u32 %r81, 0; mov.u32 %r82, -1; mov.u32 %r83, 0x80000000;";
    let masked = MMA.replace("%r8, %p4", "%r8, {%r80, %r81, %r82, %r83}, %p4");
    let clear = MMA.replace("%p4;", "0;");
    // Every lane gets its sum once; then those that are not masked get it twice.
    let text = product("ONCE", integers(32, 128), masks)
        .replacen("ONCE", &clear, 1)
        .replacen("ONCE", &masked, 1);
    let out = output(&text, &bytes(32), 4096);
    for (at, sum) in out.iter().enumerate() {
        let lane = at / 32;
        let kept = [5u32, 0, u32::MAX, 1 << 31][lane / 32] >> (lane % 32) & 1 == 1;
        let times = if kept { 1 } else { 2 };
        assert_eq!(*sum as i32, times * whole(lane, at % 32), "{at}");
    }
}

#[test]
fn few_rows_with_stationary_weights() {
    for rows in [32, 64] {
        // 64 columns of B, whose cores lie 1024 bytes apart.
        let b = descriptor(4096, 1024);
        let before = format!("mov.b64 %d7, {b}; add.s64 %d7, %d7, %d5;");
        let mma = MMA.replace("mma.cta", "mma.ws.cta");
        let text = product(&mma, integers(64, rows), &before);
        let mut room = bytes(64);
        // Rows of A lie as close as the descriptor of 128 rows has them.
        room.resize(8192, 0);
        let out = output(&text, &room, 4096);
        let each = 64 * rows as usize / 128;
        for row in 0..rows as usize {
            for column in 0..64 {
                let lane = row + column / each * rows as usize;
                let found = out[lane * 32 + column % each] as i32;
                assert_eq!(found, 2 * whole(row, column), "row {row}, column {column}");
            }
        }
    }
}

/// One warp: columns 0 to 15 of its lanes hold 1000 * lane + column; then `body`, whose registers %r20.. go to p1.
pub fn warp(body: &str, registers: usize) -> String {
    let numbers: String = (0..32)
        .map(|column| format!("add.u32 %r{}, %r3, {column};", 40 + column))
        .collect();
    let list: Vec<String> = (40..72).map(|number| format!("%r{number}")).collect();
    let stores: String = (0..registers)
        .map(|number| format!("st.global.u32 [%d9+{}], %r{};", 4 * number, 20 + number))
        .collect();
    let columns = if body.contains("SMALL") { 32 } else { 64 };
    kernel(
        2,
        &format!(
            ".shared .align 1024 .b8 room[8192]; .shared .align 8 .b64 bar; .shared .align 4 .b32 base;
             mov.u32 %r90, room; mov.u32 %r91, bar; mov.u32 %r92, base; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0];
             mov.u32 %r2, %r1; LOOP: mad.wide.u32 %d3, %r2, 4, %d1; ld.global.u32 %r3, [%d3];
             mad.lo.u32 %r4, %r2, 4, %r90; st.shared.u32 [%r4], %r3; add.u32 %r2, %r2, 32;
             setp.lt.u32 %p1, %r2, 2048; @%p1 bra LOOP; setp.eq.u32 %p3, %r1, 0; mov.u32 %r6, 1;
             @%p3 mbarrier.init.shared::cta.b64 [%r91], %r6; fence.proxy.async; bar.sync 0;
             mov.u32 %r5, {columns}; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r92], %r5; bar.sync 0;
             ld.shared.u32 %r7, [%r92]; mul.lo.u32 %r3, %r1, 1000; {numbers}
             tcgen05.st.sync.aligned.32x32b.x32.b32 [%r7], {{{}}}; tcgen05.wait::st.sync.aligned;
             {body} ld.param.u64 %d8, [p1]; mad.wide.u32 %d9, %r1, {}, %d8; {stores}
             bar.sync 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5;",
            list.join(","),
            4 * registers
        ),
    )
}

fn of_one_warp(text: &str, room: &[u8], count: usize) -> Vec<u32> {
    let run = |schedule| {
        let mut buffers = [words(room), vec![0; count]];
        let launch = Launch {
            schedule,
            ..threads(32)
        };
        execute(text, &launch, &mut buffers)
            .unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        buffers[1].clone()
    };
    let mut found = SCHEDULES.map(run);
    assert!(found.iter().all(|other| *other == found[0]));
    std::mem::take(&mut found[0])
}

fn list(registers: usize) -> String {
    let names: Vec<String> = (0..registers).map(|at| format!("%r{}", 20 + at)).collect();
    format!("{{{}}}", names.join(","))
}

/// Where the registers of a shape come from: lane and column of a thread's register.
type Cells = fn(usize, usize) -> (usize, usize);

#[test]
fn shapes_of_loads_and_stores() {
    let shapes: [(&str, usize, &str, Cells); 5] = [
        ("32x32b.x8", 8, "", |thread, register| (thread, register)),
        // Rows of eight lanes below each other, two columns of them side by side.
        ("16x64b.x4", 4, "", |thread, register| {
            (thread / 4 + thread % 2 * 8, register * 2 + thread / 2 % 2)
        }),
        ("16x128b.x2", 4, "", |thread, register| {
            (thread / 4 + register % 2 * 8, register / 2 * 4 + thread % 4)
        }),
        ("16x256b.x2", 8, "", |thread, register| {
            (
                thread / 4 + register / 2 % 2 * 8,
                register / 4 * 8 + thread % 4 * 2 + register % 2,
            )
        }),
        ("16x32bx2.x4", 4, ", 6", |thread, register| {
            (thread % 16, thread / 16 * 6 + register)
        }),
    ];
    for (shape, count, split, cell) in shapes {
        let registers = list(count);
        let load = format!(
            "tcgen05.ld.sync.aligned.{shape}.b32 {registers}, [%r7]{split}; tcgen05.wait::ld.sync.aligned;"
        );
        let out = of_one_warp(&warp(&load, count), &[0; 8192], 32 * count);
        for (at, word) in out.iter().enumerate() {
            let (lane, column) = cell(at / count, at % count);
            assert_eq!(*word as usize, 1000 * lane + column, "{shape} {at}");
        }
        // Stored 16 columns further and loaded again, all is where it was.
        let back = format!(
            "{load} add.u32 %r8, %r7, 16;
             tcgen05.st.sync.aligned.{shape}.b32 [%r8]{split}, {registers}; tcgen05.wait::st.sync.aligned;
             tcgen05.ld.sync.aligned.{shape}.b32 {registers}, [%r8]{split}; tcgen05.wait::ld.sync.aligned;"
        );
        assert_eq!(
            out,
            of_one_warp(&warp(&back, count), &[0; 8192], 32 * count),
            "{shape}"
        );
    }
}

#[test]
fn halves_of_two_columns_in_a_register() {
    let registers = list(4);
    let load = format!(
        "tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {registers}, [%r7]; tcgen05.wait::ld.sync.aligned;"
    );
    let out = of_one_warp(&warp(&load, 4), &[0; 8192], 128);
    for (at, word) in out.iter().enumerate() {
        let (first, second) = (
            1000 * (at / 4) + at % 4 * 2,
            1000 * (at / 4) + at % 4 * 2 + 1,
        );
        assert_eq!(*word as usize, first & 0xffff | (second & 0xffff) << 16);
    }
    let spread = list(8);
    let back = format!(
        "{load} add.u32 %r8, %r7, 16;
         tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [%r8], {registers}; tcgen05.wait::st.sync.aligned;
         tcgen05.ld.sync.aligned.32x32b.x8.b32 {spread}, [%r8]; tcgen05.wait::ld.sync.aligned;"
    );
    let out = of_one_warp(&warp(&back, 8), &[0; 8192], 256);
    for (at, word) in out.iter().enumerate() {
        assert_eq!(*word as usize, (1000 * (at / 8) + at % 8) & 0xffff);
    }
}

/// Copies rows of 16 bytes that lie close together, and shows the first four columns of all lanes.
fn copied(form: &str, room: &[u8]) -> Vec<u32> {
    let bits = 1u64 << 46 | 8 << 32 | 128 << 16;
    let mut text = product("", 0, "").replace("mov.pred %p4, 0;  mov.pred %p4, 1; ", "COPY ");
    text = text.replace(
        "COPY",
        &format!("mov.b64 %d20, {bits}; add.s64 %d20, %d20, %d5; tcgen05.cp.cta_group::1.{form} [%r7], %d20;"),
    );
    assert!(text.contains("tcgen05.cp"), "{text}");
    let out = output(&text, room, 4096);
    out.chunks(32).flat_map(|lane| lane[..8].to_vec()).collect()
}

#[test]
fn copies_from_shared_memory() {
    let room: Vec<u8> = (0..8192u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let source = words(&room);
    // Rows of 16 bytes, 8 to a core of 128 bytes; 32 bytes take a second core 2048 bytes further.
    let word = |row: usize, column: usize| source[column / 4 * 512 + row * 4 + column % 4];
    let same = |form: &str, columns: usize, row_of: fn(usize) -> Option<usize>| {
        let out = copied(form, &room);
        for lane in 0..128 {
            let Some(row) = row_of(lane) else { continue };
            for column in 0..columns {
                assert_eq!(
                    out[lane * 8 + column],
                    word(row, column),
                    "{form} {lane} {column}"
                );
            }
        }
    };
    same("128x128b", 4, Some);
    same("128x256b", 8, Some);
    same("4x256b", 8, |lane| (lane % 32 == 0).then_some(lane / 32));
    same("32x128b.warpx4", 4, |lane| Some(lane % 32));
    same("64x128b.warpx2::02_13", 4, |lane| Some(lane % 64));
    same("64x128b.warpx2::01_23", 4, |lane| {
        Some(lane % 32 + lane / 64 * 32)
    });
    for (format, bits) in [("b4x16_p64", 4), ("b6x16_p32", 6)] {
        let out = copied(&format!("128x128b.b8x16.{format}"), &room);
        for (lane, byte) in (0..128).flat_map(|lane| (0..16).map(move |byte| (lane, byte))) {
            let mut row = [0; 16];
            row.copy_from_slice(&room[lane * 16..][..16]);
            let wanted = u128::from_le_bytes(row) >> (bits * byte) & ((1 << bits) - 1);
            let found = out[lane * 8 + byte / 4] >> (byte % 4 * 8) & 0xff;
            assert_eq!(u128::from(found), wanted, "{format} {lane} {byte}");
        }
    }
}

#[test]
fn columns_that_another_warp_holds() {
    // Warp 0 holds all of them until it has waited a while; warp 1 asks meanwhile.
    let text = |frees: &str| {
        kernel(
            2,
            &format!(
                ".shared .align 4 .b32 base[2]; mov.u32 %r90, base; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
                 setp.eq.u32 %p1, %r2, 0; mov.u32 %r5, 512; @!%p1 bra OTHER;
                 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r90], %r5; bar.warp.sync -1;
                 ld.shared.u32 %r7, [%r90]; bar.sync 0; {frees} bra END;
                 OTHER: bar.sync 0; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r90+4], %r5;
                 bar.warp.sync -1; ld.shared.u32 %r7, [%r90+4];
                 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5; END:"
            ),
        )
    };
    let run = |frees: &str| execute(&text(frees), &threads(64), &mut [vec![0; 4], vec![0; 4]]);
    run("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5;").unwrap();
    let error = run("").unwrap_err().to_string();
    assert!(
        error.contains("deadlock") && error.contains("tcgen05.alloc"),
        "{error}"
    );
}

/// What other tests take for granted.
pub fn all() {
    integers_of_eight_bits();
    sums_that_saturate();
    lanes_that_keep_what_they_have();
    few_rows_with_stationary_weights();
    shapes_of_loads_and_stores();
    halves_of_two_columns_in_a_register();
    copies_from_shared_memory();
}
