//! Copies that land later: a wait that is missing must show.

use super::{execute, execute_prepared, kernel, late, threads, SCHEDULES};
use crate::launch::{Queue, Timing};
use crate::{Launch, Schedule, TensorMap, Watch};

// Values alone: what the race detector finds does not depend on the schedule.
fn survivors(
    text: &str,
    launch: &Launch,
    input: &[Vec<u32>],
    output: usize,
    wanted: &[u32],
) -> Vec<Schedule> {
    SCHEDULES
        .into_iter()
        .filter(|schedule| {
            let mut buffers = input.to_vec();
            let result = execute(
                text,
                &Launch {
                    schedule: *schedule,
                    races: Watch::Off,
                    ..launch.clone()
                },
                &mut buffers,
            );
            result.is_ok() && buffers[output] == wanted
        })
        .collect()
}

/// The schedules under which work of a queue lands when it is issued.
fn at_once(queue: Queue) -> Vec<Schedule> {
    let lands = |schedule: &Schedule| schedule.timing(queue) == Timing::AtOnce;
    SCHEDULES.into_iter().filter(lands).collect()
}

const BARRIER: &str =
    ".shared .align 8 .b64 bar; .shared .align 128 .b8 room[4096]; mov.u32 %r90, bar;
mov.u32 %r91, room;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p9, %r1, 0; @!%p9 bra READY; mov.u32 %r92, 1;
    mbarrier.init.shared::cta.b64 [%r90], %r92; fence.mbarrier_init.release.cluster;
    READY: bar.sync 0; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];";
const WAIT: &str = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r90], 0; @!%p1 bra WAIT;";
const STORE: &str =
    "mad.lo.u32 %r4, %r1, 4, %r91; ld.shared.u32 %r5, [%r4]; mad.wide.u32 %d4, %r1, 4, %d2;
st.global.u32 [%d4], %r5;";

#[test]
pub fn a_missing_wait_for_copies_of_threads_shows() {
    let copy = "mad.lo.u32 %r2, %r1, 16, %r91; mad.wide.u32 %d3, %r1, 16, %d1;
    cp.async.cg.shared.global [%r2], [%d3], 16, 12;
        cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;";
    let text = kernel(2, &format!("{BARRIER}{copy}{STORE}"));
    let input = [(0..128).collect(), vec![0; 32]];
    let wanted: Vec<u32> = (0..32).map(|n| if n % 4 == 3 { 0 } else { n }).collect();
    assert_eq!(
        survivors(&text, &threads(32), &input, 1, &wanted).len(),
        SCHEDULES.len()
    );
    let broken = text.replace("cp.async.wait_group 0", "cp.async.wait_group 1");
    let left = survivors(&broken, &threads(32), &input, 1, &wanted);
    assert_eq!(
        left,
        at_once(Queue::Loads),
        "what lands at once hides the fault; nothing else does"
    );
}

#[test]
pub fn copies_that_arrive_at_an_mbarrier() {
    // What a thread copies afterwards, and in one group with what it copied before, changes nothing.
    let more = "add.u32 %r3, %r2, 2048; cp.async.ca.shared.global [%r3], [%d3], 16; cp.async.commit_group;";
    let cases = ["", ".noinc"].map(|counted| [(counted, ""), (counted, more)]);
    for (counted, more) in cases.concat() {
        // Counted copies add the arrival that they make; the thread itself arrives too.
        let arrivals = if counted.is_empty() { 32 } else { 64 };
        let copy = format!(
            "mad.lo.u32 %r2, %r1, 16, %r91; mad.wide.u32 %d3, %r1, 16, %d1;
            cp.async.ca.shared.global [%r2], [%d3], 16;
             cp.async.mbarrier.arrive{counted}.shared.b64 [%r90]; {more} mbarrier.arrive.shared.b64 %d9, [%r90];"
        );
        let text = kernel(2, &format!("{BARRIER}{copy}{WAIT}{STORE}"))
            .replace("mov.u32 %r92, 1", &format!("mov.u32 %r92, {arrivals}"));
        let input = [(0..128).collect(), vec![0; 32]];
        let wanted: Vec<u32> = (0..32).collect();
        assert_eq!(
            survivors(&text, &threads(32), &input, 1, &wanted).len(),
            SCHEDULES.len(),
            "{counted} {more}"
        );
    }
}

#[test]
pub fn a_missing_wait_for_a_bulk_copy_shows() {
    let copy = "@!%p9 bra GO; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], 128;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r91], [%d1], 128, [%r90]; GO:";
    let text = kernel(2, &format!("{BARRIER}{copy}{WAIT}{STORE}"));
    let input = [(5..37).collect(), vec![0; 32]];
    let wanted: Vec<u32> = (5..37).collect();
    assert_eq!(
        survivors(&text, &threads(32), &input, 1, &wanted).len(),
        SCHEDULES.len()
    );
    let broken = kernel(2, &format!("{BARRIER}{copy}{STORE}"));
    let left = survivors(&broken, &threads(32), &input, 1, &wanted);
    assert_eq!(left, at_once(Queue::Loads));
    // Too few bytes announced: the phase never ends.
    let stuck = text.replace("[%r90], 128;", "[%r90], 144;");
    assert!(survivors(&stuck, &threads(32), &input, 1, &wanted).is_empty());
}

#[test]
pub fn a_missing_wait_for_a_bulk_store_shows() {
    let text = kernel(
        2,
        &format!(
            "{BARRIER} mad.lo.u32 %r4, %r1, 4, %r91; st.shared.u32 [%r4], %r1; fence.proxy.async.shared::cta;
            bar.sync 0;
             @!%p9 bra GO; cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r91], 128;
             cp.async.bulk.commit_group;
             cp.async.bulk.wait_group.read 0; GO: bar.sync 0; mov.u32 %r6, 99; st.shared.u32 [%r4], %r6;"
        ),
    );
    let input = [vec![0], vec![0; 32]];
    let wanted: Vec<u32> = (0..32).collect();
    assert_eq!(
        survivors(&text, &threads(32), &input, 1, &wanted).len(),
        SCHEDULES.len()
    );
    let broken = text.replace("cp.async.bulk.wait_group.read 0;", "");
    let left = survivors(&broken, &threads(32), &input, 1, &wanted);
    assert!(left.len() < SCHEDULES.len() && !left.contains(&late(Queue::Stores)));
    assert!(left.contains(&late(Queue::Loads)));
}

/// The first warp issues copies and waits for each; the second waits for the same phases, and nothing keeps the first
/// from going on before it has seen them. Where copies take no time, they still end no phase that nobody could see.
#[test]
pub fn phases_do_not_end_before_others_have_looked() {
    let rounds = |body: &str| {
        let each = (0..5).map(|round| {
            let body = body.replace("ROUND", &round.to_string());
            body.replace("PARITY", &(round % 2).to_string())
        });
        each.collect::<String>()
    };
    let copies = rounds(
        "@!%p9 bra AROUND; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], 128;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r91], [%d1], 128, [%r90]; AROUND:
        AGAINROUND: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r90], PARITY; @!%p1 bra AGAINROUND;",
    );
    let looks = rounds(
        "LOOKROUND: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r90], PARITY; @!%p1 bra LOOKROUND;",
    );
    let text = kernel(
        2,
        &format!(
            "{BARRIER} setp.ge.u32 %p2, %r1, 32; @%p2 bra SECOND; {copies} bra END; SECOND: {looks} END: {STORE}"
        ),
    );
    let wanted: Vec<u32> = (5..37).collect();
    let input = [wanted.clone(), vec![0; 64]];
    let all = [wanted, vec![u32::MAX; 32]].concat();
    assert_eq!(survivors(&text, &threads(64), &input, 1, &all), SCHEDULES);
}

#[test]
fn a_map_that_the_kernel_makes_itself() {
    // 8 by 4 words from (2, 1) of 12 by 3, by a map that was zeros until thread 0 wrote its fields.
    let fields = [
        ("rank", "", "b32", "1"),
        ("global_address", "", "b64", "%d12"),
        ("box_dim", "0, ", "b32", "8"),
        ("box_dim", "1, ", "b32", "4"),
        ("global_dim", "0, ", "b32", "12"),
        ("global_dim", "1, ", "b32", "3"),
        ("global_stride", "0, ", "b64", "48"),
        ("element_stride", "0, ", "b32", "1"),
        ("element_stride", "1, ", "b32", "1"),
        ("elemtype", "", "b32", "2"),
        ("interleave_layout", "", "b32", "0"),
        ("swizzle_mode", "", "b32", "0"),
        ("fill_mode", "", "b32", "0"),
    ];
    let replaced: String = fields
        .iter()
        .map(|(field, ordinal, ty, value)| {
            format!("@%p9 tensormap.replace.tile.{field}.shared::cta.b1024.{ty} [%r85], {ordinal}{value};\n")
        })
        .collect();
    let make = format!(
        ".shared .align 128 .b8 map[128]; mov.u32 %r85, map; mov.u32 %r86, 0; mad.lo.u32 %r87, %r1, 4, %r85;
         ld.param.u64 %d12, [p2]; setp.lt.u32 %p8, %r1, 32; @%p8 st.shared.u32 [%r87], %r86; bar.sync 0; {replaced}
         @!%p8 bra MADE; bar.warp.sync -1;
         tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r85], 128;
         MADE: fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
         @!%p9 bra GO; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], 128; mov.u32 %r80, 2; mov.u32 %r81, 1;
         cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
         [%r91], [%d1, {{%r80, %r81}}], [%r90]; GO:"
    );
    let text = kernel(3, &format!("{BARRIER}{make}{WAIT}{STORE}"));
    let input = |kind: &str| {
        let mut buffers = [vec![0; 32], vec![0; 64], (0..36).collect()];
        let text = text.replace("b1024.b32 [%r85], 2;", kind);
        execute(&text, &threads(64), &mut buffers).map(|_| buffers[1].clone())
    };
    let found = input("b1024.b32 [%r85], 2;").unwrap();
    for (at, word) in found[..32].iter().enumerate() {
        let (column, row) = (2 + at % 8, 1 + at / 8);
        assert_eq!(
            *word as usize,
            if row < 3 { row * 12 + column } else { 0 },
            "{at}"
        );
    }
    let error = input("b1024.b32 [%r85], 16;").unwrap_err().to_string();
    assert!(error.contains("ElementType 16 in a tensor map"), "{error}");
}

/// What an H200 does: of a box that has no element of the tensor it reads where the map begins.
#[test]
pub fn a_box_wholly_outside_needs_memory_where_its_map_begins() {
    let copy =
        "@!%p9 bra GO; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], 256; mov.u32 %r80, 40;
        mov.u32 %r81, 3; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r91], [%d1, {%r80, %r81}], [%r90]; GO:";
    let text = kernel(3, &format!("{BARRIER}{copy}{WAIT}{STORE}"));
    let begins = |shift: u64| {
        let mut buffers = [vec![0; 32], vec![7; 64], vec![5; 200]];
        let result = execute_prepared(&text, &threads(64), &mut buffers, |addresses, buffers| {
            let map = TensorMap {
                address: addresses[2].wrapping_sub(shift),
                kind: 2,
                sizes: vec![40, 5],
                strides: vec![160],
                box_sizes: vec![8, 8],
                swizzle: 0,
                fills_nan: false,
            };
            let bytes = map.encode().unwrap();
            for (word, part) in buffers[0].iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
            }
        });
        result.map(|_| buffers[1].clone())
    };
    assert_eq!(begins(0).unwrap(), [0; 64]);
    let error = begins(1 << 40).unwrap_err().to_string();
    assert!(error.contains("wholly outside of its tensor"), "{error}");
}

#[test]
pub fn a_box_is_cut_at_the_tensor_and_swizzled() {
    // 8 by 8 words from (36, 3) of 40 by 5: most columns and rows lie outside.
    let copy =
        "@!%p9 bra GO; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], 256; mov.u32 %r80, 36;
    mov.u32 %r81, 3;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r91], [%d1, {%r80, %r81}], [%r90]; GO:";
    let back = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d5, {%r80, %r81}], [%r91];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
    let text = kernel(
        5,
        &format!("{BARRIER}{copy}{WAIT}{STORE} ld.param.u64 %d5, [p3]; mov.u32 %r80, -1; mov.u32 %r81, 1;
        bar.sync 0; @!%p9 bra DONE; {back} DONE:"),
    )
    .replace(".align 128 .b8 room", ".align 1024 .b8 room");
    let encoded = |address: u64, swizzle: u32| -> Vec<u32> {
        let (sizes, strides, box_sizes) = (vec![40, 5], vec![160], vec![8, 8]);
        let map = TensorMap {
            address,
            kind: 2,
            sizes,
            strides,
            box_sizes,
            swizzle,
            fills_nan: false,
        };
        let bytes = map.encode().unwrap();
        bytes
            .chunks(4)
            .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
            .collect()
    };
    for (swizzle, schedule) in [0, 1]
        .into_iter()
        .flat_map(|swizzle| SCHEDULES.map(|schedule| (swizzle, schedule)))
    {
        let mut buffers = [
            vec![0; 32],
            vec![0; 64],
            (1000..1200).collect(),
            vec![0; 32],
            vec![7; 200],
        ];
        let launch = Launch {
            schedule,
            ..threads(64)
        };
        let prepare = |addresses: &[u64], buffers: &mut [Vec<u32>]| {
            buffers[0] = encoded(addresses[2], swizzle);
            buffers[3] = encoded(addresses[4], swizzle);
        };
        execute_prepared(&text, &launch, &mut buffers, prepare).unwrap();
        let value = |x: u32, y: u32| {
            if x < 4 && y < 2 {
                1000 + (3 + y) * 40 + 36 + x
            } else {
                0
            }
        };
        let mut wanted = vec![0; 64];
        for (y, x) in (0..8).flat_map(|y| (0..8).map(move |x| (y, x))) {
            // The upper half of each 256 bytes has its 16-byte chunks exchanged.
            let at = if swizzle == 1 && y >= 4 {
                (y * 8 + x) ^ 4
            } else {
                y * 8 + x
            };
            wanted[at as usize] = value(x, y);
        }
        assert_eq!(buffers[1], wanted);
        // Stored at (-1, 1): the first column and the rows past the end are left out.
        for (y, x) in (0..5u32).flat_map(|y| (0..40u32).map(move |x| (y, x))) {
            let inside = y >= 1 && x < 7;
            let wanted = if inside { value(x + 1, y - 1) } else { 7 };
            assert_eq!(buffers[4][(y * 40 + x) as usize], wanted, "({x}, {y})");
        }
    }
}

#[test]
pub fn blocks_of_a_cluster_write_into_each_other() {
    let text = kernel(
        2,
        &format!(
            "{BARRIER} fence.mbarrier_init.release.cluster; barrier.cluster.arrive.release.aligned;
            barrier.cluster.wait.acquire.aligned;
             mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mad.lo.u32 %r4, %r1, 4, %r91;
             mapa.shared::cluster.u32 %r5, %r4, %r3; mapa.shared::cluster.u32 %r6, %r90, %r3;
             @!%p9 bra GO; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r90], 128; GO:
             mad.lo.u32 %r7, %r2, 100, %r1;
             st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r7, [%r6];
             {WAIT} ld.shared.u32 %r8, [%r4]; mad.lo.u32 %r9, %r2, 32, %r1; mad.wide.u32 %d4, %r9, 4, %d2;
             st.global.u32 [%d4], %r8;
             barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
        ),
    );
    let launch = Launch {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..threads(32)
    };
    let wanted: Vec<u32> = (0..64)
        .map(|n| if n < 32 { 100 + n } else { n - 32 })
        .collect();
    assert_eq!(
        survivors(&text, &launch, &[vec![0], vec![0; 64]], 1, &wanted).len(),
        SCHEDULES.len()
    );
}
