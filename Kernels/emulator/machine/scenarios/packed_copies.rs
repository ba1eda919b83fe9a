//! Tensor copies of elements below 8 bits: where the documentation of PTX and of the driver puts each.

use super::{execute_prepared, kernel, threads, SCHEDULES};
use crate::{Error, Launch, TensorMap};

const FOUR: u32 = 13;
const FOUR_APART: u32 = 14;
const SIX_APART: u32 = 15;

/// 256 elements in each of 5 rows.
fn map(kind: u32, box_size: u32, swizzle: u32) -> TensorMap {
    TensorMap {
        address: 0,
        kind,
        sizes: vec![256, 5],
        strides: vec![192],
        box_sizes: vec![box_size, 3],
        swizzle,
        fills_nan: false,
    }
}

const BEGIN: &str = ".shared .align 8 .b64 bar; .shared .align 1024 .b8 room[1024]; mov.u32 %r90, bar;
    mov.u32 %r91, room; mov.u32 %r1, %tid.x; setp.eq.u32 %p9, %r1, 0; mov.u32 %r92, 1;
    @%p9 mbarrier.init.shared::cta.b64 [%r90], %r92; @%p9 fence.mbarrier_init.release.cluster;
    mad.lo.u32 %r4, %r1, 4, %r91; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.u32 %d4, %r1, 4, %d2;
    bar.sync 0;";

/// Loads a box from a corner, announced as so many bytes, and shows 96 words of shared memory in p1; p2 is the tensor.
fn load(x: i32, bytes: u32) -> String {
    kernel(
        3,
        &format!(
            "{BEGIN} mov.u32 %r80, {x}; mov.u32 %r81, 3; @!%p9 bra WAIT;
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], {bytes};
             cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
             [%r91], [%d1, {{%r80, %r81}}], [%r90];
             WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r90], 0; @!%p1 bra WAIT;
             ld.shared.u32 %r5, [%r4]; st.global.u32 [%d4], %r5;"
        ),
    )
}

/// Stores a box that p1 gives 96 words of to a corner of p2.
fn store(x: i32, operation: &str) -> String {
    kernel(
        3,
        &format!(
            "{BEGIN} mov.u32 %r80, {x}; mov.u32 %r81, 3; ld.global.u32 %r5, [%d4]; st.shared.u32 [%r4], %r5;
             fence.proxy.async; bar.sync 0; @!%p9 bra END;
             {operation}.global.shared::cta{reduction}.bulk_group [%d1, {{%r80, %r81}}], [%r91];
             cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:",
            reduction = if operation.contains("reduce") { ".add" } else { "" },
        ),
    )
}

const COPY: &str = "cp.async.bulk.tensor.2d";
const REDUCE: &str = "cp.reduce.async.bulk.tensor.2d";

fn tensor() -> Vec<u8> {
    (0..960u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 23) as u8)
        .collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let parts = bytes.chunks_exact(4);
    parts
        .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
        .collect()
}

/// What p1 and p2 hold in the end, as bytes: the same under every schedule.
fn run(text: &str, map: &TensorMap, shown: &[u8]) -> Result<[Vec<u8>; 2], Error> {
    let one = |schedule| {
        let mut buffers = [vec![0; 32], words(shown), words(&tensor())];
        let launch = Launch {
            schedule,
            ..threads(96)
        };
        execute_prepared(text, &launch, &mut buffers, |addresses, buffers| {
            let address = addresses[2];
            let map = TensorMap {
                address,
                ..map.clone()
            };
            buffers[0] = words(&map.encode().unwrap());
        })?;
        let bytes = |at: usize| {
            let each = buffers[at].iter().flat_map(|word: &u32| word.to_le_bytes());
            each.collect::<Vec<u8>>()
        };
        Ok([bytes(1), bytes(2)])
    };
    let mut found = SCHEDULES
        .into_iter()
        .map(one)
        .collect::<Result<Vec<_>, Error>>()?;
    assert!(found.iter().all(|other| *other == found[0]));
    Ok(found.swap_remove(0))
}

fn refusal(text: &str, map: &TensorMap) -> String {
    run(text, map, &[0; 384]).unwrap_err().to_string()
}

#[test]
fn pairs_of_elements_stay_as_they_are() {
    // From column 200: 56 elements of a row are inside, and one row is not.
    let map = map(FOUR, 64, 0);
    let [shown, _] = run(&load(200, 96), &map, &[0; 384]).unwrap();
    for (at, byte) in shown[..96].iter().enumerate() {
        let (row, column) = (at / 32, at % 32);
        let wanted = if row < 2 && column < 28 {
            tensor()[(3 + row) * 192 + 100 + column]
        } else {
            0
        };
        assert_eq!(*byte, wanted, "{row} {column}");
    }
    let source: Vec<u8> = (0..384).map(|at| at as u8 ^ 0x5a).collect();
    let [_, stored] = run(&store(200, COPY), &map, &source).unwrap();
    for (at, byte) in stored.iter().enumerate() {
        let (row, column) = (at / 192, at % 192);
        let wanted = if row >= 3 && (100..128).contains(&column) {
            source[(row - 3) * 32 + column - 100]
        } else {
            tensor()[at]
        };
        assert_eq!(*byte, wanted, "{row} {column}");
    }
    let odd = refusal(&load(201, 96), &map);
    assert!(odd.contains("a first coordinate of 201"), "{odd}");
}

#[test]
fn sixteen_elements_take_sixteen_bytes() {
    for (kind, filled) in [(FOUR_APART, 8), (SIX_APART, 12)] {
        for swizzle in [0, 3] {
            let map = map(kind, 128, swizzle);
            let bytes = 24 * filled as u32;
            let [shown, _] = run(&load(128, bytes), &map, &[0; 384]).unwrap();
            for row in 0..3 {
                for (chunk, byte) in (0..8).flat_map(|chunk| (0..filled).map(move |at| (chunk, at)))
                {
                    let moved = if swizzle == 3 { chunk ^ row } else { chunk };
                    let packed = tensor()[(3 + row) % 5 * 192 + (8 + chunk) * filled + byte];
                    assert_eq!(
                        shown[row * 128 + moved * 16 + byte],
                        if row < 2 { packed } else { 0 },
                        "{kind} {swizzle} {row} {chunk} {byte}"
                    );
                }
            }
            // What counts is what was copied, not the room that it takes.
            let message = refusal(&load(128, 384), &map);
            assert!(message.contains("deadlock"), "{message}");
            let message = refusal(&load(64, bytes), &map);
            assert!(message.contains("a first coordinate of 64"), "{message}");
        }
    }
}

#[test]
fn stores_pack_six_bits_of_each_byte() {
    let source: Vec<u8> = (0..384u32).map(|at| (at * 37) as u8).collect();
    let map_of = |kind| map(kind, 128, 0);
    let [_, stored] = run(&store(128, COPY), &map_of(SIX_APART), &source).unwrap();
    for (at, byte) in stored.iter().enumerate() {
        let (row, bit) = (at / 192, at % 192 * 8);
        let bit_of = |bit: usize| {
            let element = (row - 3) * 128 + bit / 6 - 128;
            source[element] >> (bit % 6) & 1
        };
        let wanted = if row >= 3 && bit >= 128 * 6 {
            (0..8).map(|at| bit_of(bit + at) << at).sum()
        } else {
            tensor()[at]
        };
        assert_eq!(*byte, wanted, "{at}");
    }
    let message = refusal(&store(128, COPY), &map_of(FOUR_APART));
    assert!(
        message.contains("16U4_ALIGN16B, which is for loads"),
        "{message}"
    );
    for kind in [FOUR, SIX_APART] {
        let message = refusal(&store(128, REDUCE), &map_of(kind));
        assert!(message.contains("a reduction of data type"), "{message}");
    }
}
