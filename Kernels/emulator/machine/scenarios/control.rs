//! Control flow, warps, barriers, and what goes wrong with them.

use super::{execute, kernel, refusal, threads, SCHEDULES};
use crate::{Footprint, Launch, Spread, Watch};

#[test]
pub fn lanes_part_and_meet_again() {
    // Lane n loops n times; all lanes then take part in one shuffle.
    let text = kernel(
        1,
        "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;
         LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;
         add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1; bra LOOP;
         DONE: shfl.sync.down.b32 %r4|%p2, %r3, 1, 31, -1;
         selp.b32 %r5, %r4, 1000, %p2;
         ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r5;",
    );
    let mut buffers = [vec![0; 32]];
    let report = execute(&text, &threads(32), &mut buffers).unwrap();
    let sum = |n: u32| n * n.saturating_sub(1) / 2;
    let wanted: Vec<u32> = (0..32)
        .map(|lane| if lane < 31 { sum(lane + 1) } else { 1000 })
        .collect();
    assert_eq!(buffers[0], wanted);
    // The shuffle ran once for all.
    assert_eq!(report.counters.forms["shfl.sync.down.b32"], 32);
}

#[test]
pub fn lanes_that_spin_do_not_starve_the_others() {
    // Lane 0 polls shared memory that lane 1 writes from a higher address.
    let text = kernel(
        1,
        ".shared .align 4 .u32 flag; mov.u32 %r1, %tid.x; mov.u32 %r9, 0; setp.eq.u32 %p1, %r1, 1;
         @%p1 st.shared.u32 [flag], %r9; bar.warp.sync -1; @%p1 bra WRITE;
         POLL: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra POLL;
         bra END;
         WRITE: mov.u32 %r3, 7; st.volatile.shared.u32 [flag], %r3;
         END: ld.param.u64 %d1, [p0]; mov.u32 %r4, 1; red.global.add.u32 [%d1], %r4;",
    );
    let mut buffers = [vec![0]];
    execute(&text, &threads(32), &mut buffers).unwrap();
    assert_eq!(buffers[0], [32]);
}

#[test]
pub fn functions_and_tables_of_branches() {
    let text = kernel(
        1,
        "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
         choices: .branchtargets A, B, C, C;
         brx.idx %r2, choices;
         A: mov.u32 %r3, 10; bra END;
         B: mov.u32 %r3, 20; bra END;
         C: { .param .b32 in; .param .b32 out; st.param.b32 [in], %r1; call (out), square, (in);
         ld.param.b32 %r3, [out]; }
         END: ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r3;",
    )
    .replace(
        ".visible .entry",
        ".func (.param .b32 out) square(.param .b32 in) { .reg .b32 %r<3>; .reg .pred %p1; ld.param.b32 %r1, [in];
         mul.lo.u32 %r2, %r1, %r1; st.param.b32 [out], %r2; setp.gt.u32 %p1, %r1, 9; @%p1 ret;
         add.u32 %r2, %r2, 1; st.param.b32 [out], %r2; ret; }\n.visible .entry",
    );
    let mut buffers = [vec![0; 32]];
    execute(&text, &threads(32), &mut buffers).unwrap();
    let wanted: Vec<u32> = (0..32)
        .map(|n: u32| match n & 3 {
            0 => 10,
            1 => 20,
            _ => n * n + u32::from(n <= 9),
        })
        .collect();
    assert_eq!(buffers[0], wanted);
}

#[test]
pub fn votes_elections_and_reductions() {
    let text = kernel(
        1,
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r2, %p1, -1;
         redux.sync.max.u32 %r3, %r1, -1; redux.sync.add.s32 %r4, %r1, -1;
         elect.sync %r5|%p2, -1; selp.u32 %r6, 1, 0, %p2;
         cvt.rn.f32.u32 %f1, %r1; neg.f32 %f1, %f1; redux.sync.min.f32 %f2, %f1, -1;
         match.any.sync.b32 %r7, %r6, -1;
         shfl.sync.bfly.b32 %r8, %r1, 3, 31, -1; shfl.sync.idx.b32 %r9, %r1, 2, 0x1c03, -1;
         shfl.sync.up.b32 %r10, %r1, 2, 0, -1;
         xor.b32 %r11, %r8, %r9; xor.b32 %r11, %r11, %r10;
         ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r1, 28, %d1;
         st.global.u32 [%d2], %r2; st.global.u32 [%d2+4], %r3; st.global.u32 [%d2+8], %r4;
         st.global.u32 [%d2+12], %r6;
         st.global.f32 [%d2+16], %f2; st.global.u32 [%d2+20], %r7; st.global.u32 [%d2+24], %r11;",
    );
    let mut buffers = [vec![0; 32 * 7]];
    execute(&text, &threads(32), &mut buffers).unwrap();
    for (lane, row) in buffers[0].chunks(7).enumerate() {
        let lane = lane as u32;
        assert_eq!(row[..4], [31, 31, 496, u32::from(lane == 0)]);
        assert_eq!(f32::from_bits(row[4]), -31.0);
        assert_eq!(row[5], if lane == 0 { 1 } else { !1 });
        assert_eq!(
            row[6],
            (lane ^ 3) ^ (lane & !3 | 2) ^ if lane < 2 { lane } else { lane - 2 }
        );
    }
}

#[test]
pub fn carries_and_fields() {
    let text = kernel(
        1,
        "mov.u32 %r1, 0xffffffff; mov.u32 %r2, 1; add.cc.u32 %r3, %r1, %r2; addc.u32 %r4, %r1, %r1;
         lop3.b32 %r5, %r1, %r2, %r3, 0xE2; prmt.b32 %r6, %r1, %r2, 0x4510;
         mov.b64 %d3, {%r2, %r1}; mov.b64 {%r7, %r8}, %d3; shf.l.wrap.b32 %r9, %r2, %r1, 4;
         fma.rm.f32 %f1, 0f3F800001, 0f3F800001, 0f00000000; fma.rn.f32 %f2, 0f3F800001, 0f3F800001, 0f00000000;
         ld.param.u64 %d1, [p0]; st.global.v4.u32 [%d1], {%r3, %r4, %r5, %r6};
         st.global.v4.u32 [%d1+16], {%r7, %r8, %r9, %r1};
         st.global.v2.f32 [%d1+32], {%f1, %f2};",
    );
    let mut buffers = [vec![0; 10]];
    execute(&text, &threads(1), &mut buffers).unwrap();
    assert_eq!(
        buffers[0],
        [
            0,
            0xffff_ffff,
            1,
            0x0100_ffff,
            1,
            0xffff_ffff,
            0xffff_fff0,
            0xffff_ffff,
            0x3f80_0002,
            0x3f80_0002
        ]
    );
}

#[test]
pub fn a_barrier_orders_the_warps_of_a_block() {
    let text = kernel(
        1,
        ".shared .align 4 .b8 room[512]; mov.u32 %r1, %tid.x; mov.u32 %r9, room; mad.lo.u32 %r2, %r1, 4, %r9;
         st.shared.u32 [%r2], %r1; bar.sync 0;
         xor.b32 %r3, %r1, 127; mad.lo.u32 %r4, %r3, 4, %r9; ld.shared.u32 %r5, [%r4];
         setp.eq.u32 %p1, %r5, 3; bar.red.popc.u32 %r6, 0, %p1; add.u32 %r5, %r5, %r6;
         ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r5;",
    );
    for schedule in SCHEDULES {
        let mut buffers = [vec![0; 128]];
        execute(
            &text,
            &Launch {
                schedule,
                ..threads(128)
            },
            &mut buffers,
        )
        .unwrap();
        assert_eq!(buffers[0], (0..128).map(|n| 128 - n).collect::<Vec<u32>>());
    }
    // Without the barrier somebody reads what nobody wrote, under some schedule.
    let broken = text.replacen("bar.sync 0;", "", 1);
    let wrong = SCHEDULES.iter().any(|schedule| {
        let mut buffers = [vec![0; 128]];
        execute(
            &broken,
            &Launch {
                schedule: *schedule,
                races: Watch::Off,
                ..threads(128)
            },
            &mut buffers,
        )
        .unwrap();
        buffers[0] != (0..128).map(|n| 128 - n).collect::<Vec<u32>>()
    });
    assert!(wrong);
}

#[test]
pub fn what_is_wrong_is_named_with_its_place() {
    let cases = [
        ("ld.param.u64 %d1, [p0];
        ld.global.u32 %r1, [%d1+16];", "out of bounds: 4 bytes at 16 of an allocation of 16"),
        ("ld.param.u64 %d1, [p0]; ld.global.u32 %r1, [%d1+2];", "misaligned"),
        ("mov.u64 %d1, 64; ld.global.u32 %r1, [%d1];", "in no allocation"),
        (".shared .align 4 .b8 s[8]; mov.u32 %r9, s; ld.shared.u32 %r1, [%r9+8];", "of 8 bytes of shared memory"),
        (".local .align 4 .b8 l[16]; ld.local.u32 %r1, [l+16];", "local memory"),
        (".shared .align 8 .b64 b; mov.u32 %r9, b;
        mbarrier.arrive.shared.b64 %d1, [%r9];", "no mbarrier was initialised"),
        (
            ".shared .align 8 .b64 b; mov.u32 %r9, b; mov.u32 %r1, 1; mbarrier.init.shared.b64 [%r9], %r1;
             mbarrier.arrive.shared.b64 %d1, [%r9], 2;",
            "arrivals at an mbarrier",
        ),
        ("mov.u32 %r1, 3; mapa.shared::cluster.u32 %r2, %r1, %r1;", "block 3 of a cluster of 1"),
        ("bar.sync 3, 64;", "deadlock"),
        ("trap;", "trap"),
        (
            ".shared .align 8 .b64 b; mov.u32 %r9, b; mov.u32 %r1, 1; mbarrier.init.shared.b64 [%r9], %r1;
             WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r9], 0; @!%p1 bra WAIT;",
            "1 of 1 arrivals and 0 bytes missing",
        ),
    ];
    for (body, words) in cases {
        let message = refusal(&kernel(1, body), &threads(1), &[vec![0; 4]]);
        assert!(message.contains(words), "{body}\n{message}");
        assert!(
            message.contains("PTX line") && message.starts_with("k: "),
            "{message}"
        );
    }
}

#[test]
pub fn unknown_instructions_are_refused_before_anything_runs() {
    for (body, words) in [
        ("wobble.b32 %r1, %r2;", "no such opcode"),
        ("add.wild.s32 %r1, %r1, %r2;", "modifier .wild"),
        ("add.b32 %r1, %r1, %r2;", "add of B32"),
        ("mov.u32 %r1, %d1;", "another size"),
        ("wgmma.mma_async.sync.aligned.m64n8k8.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %d1, %d2, 1, 1, 1, 0, 0;", "m64n8k8"),
        ("call nothing;", "no body"),
        ("add.s32 %r1, %f1, %r2;", "an operand of F32 for S32"),
        ("add.f32 %f1, %f2, 1;", "an operand of S64 for F32"),
        ("setp.lt.u32 %p1, %r1, 1.5;", "an operand of F64 for U32"),
        ("cvt.s32.f32 %r1, %f1;", "a conversion of F32 to S32"),
        ("cvt.f32.s32 %f1, %r1;", "a conversion of S32 to F32"),
        ("cvt.f16.f32 %h1, %f1;", "a conversion of F32 to F16"),
        ("cp.async.cg.shared.global [%r1], [%d1], 8;", "a copy of 8 bytes"),
        ("setmaxnreg.inc.sync.aligned.u32 230;", "230 registers"),
    ] {
        let error = execute(&kernel(0, body), &threads(1), &mut []).unwrap_err().to_string();
        assert!(error.contains("unknown instruction") && error.contains("PTX line"), "{error}");
        assert!(error.contains(words), "{body}: {error}");
    }
}

/// Threads of a warp, of which %p1 holds for the lower half.
fn halves(body: &str) -> String {
    kernel(
        1,
        &format!("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; {body}"),
    )
}

#[test]
fn lanes_that_an_instruction_needs() {
    for (body, words) in [
        ("@%p1 bar.sync 0;", "it needs lanes 0xffff0000"),
        ("@%p1 barrier.sync.aligned 0;", "it needs lanes 0xffff0000"),
        (
            "@%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;",
            "it needs lanes 0xffff0000",
        ),
        (
            "@%p1 vote.sync.any.pred %p2, %p1, 0x1ffff;",
            "it needs lanes 0x00010000",
        ),
        (
            "@!%p1 bra ELSE; bar.sync 0; bra END; ELSE: bar.sync 0; END:",
            "wait for lanes that are elsewhere",
        ),
        (
            "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff;",
            "its member mask 0x0000ffff is not that of all lanes",
        ),
        (
            "add.u32 %r2, %r1, 1; bar.warp.sync %r2;",
            "its member mask 0x00000003 is not that of all lanes",
        ),
    ] {
        let message = refusal(&halves(body), &threads(32), &[vec![0]]);
        assert!(message.contains(words), "{body}\n{message}");
    }
    // Threads of a barrier that is not aligned come one by one, and who has left is not waited for.
    for body in [
        "@!%p1 bra ELSE; barrier.sync 0; bra END; ELSE: barrier.sync 0; END:",
        "@%p1 bra END; bar.sync 0; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; END:",
    ] {
        execute(&halves(body), &threads(32), &mut [vec![0]]).unwrap();
    }
}

#[test]
fn each_lane_names_its_fellows() {
    let text = halves(
        "selp.b32 %r2, 0xffff, 0xffff0000, %p1; and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0;
         vote.sync.ballot.b32 %r4, %p2, %r2; redux.sync.add.u32 %r5, %r1, %r2; elect.sync %r6|%p3, %r2;
         match.any.sync.b32 %r7, %r3, %r2;
         ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r1, 16, %d1; st.global.v4.u32 [%d2], {%r4, %r5, %r6, %r7};",
    );
    let mut buffers = [vec![0; 128]];
    execute(&text, &threads(32), &mut buffers).unwrap();
    for (lane, row) in buffers[0].chunks(4).enumerate() {
        let (shift, sum) = if lane < 16 { (0, 120) } else { (16, 376) };
        let same = 0x5555 << (lane % 2 + shift as usize);
        assert_eq!(row, [0x5555 << shift, sum, shift, same], "lane {lane}");
    }
}

#[test]
fn arrivals_and_waits_of_a_cluster_take_turns() {
    let (arrive, wait) = (
        "barrier.cluster.arrive.aligned;",
        "barrier.cluster.wait.aligned;",
    );
    let text = |steps: &[&str]| kernel(0, &steps.concat());
    let right = text(&[arrive, wait, arrive, wait, arrive]);
    execute(&right, &threads(64), &mut []).unwrap();
    for (steps, words) in [
        (vec![wait], "without having arrived"),
        (vec![arrive, wait, wait], "without having arrived"),
        (vec![arrive, arrive], "twice without a wait"),
        (vec![arrive, wait, arrive, arrive], "twice without a wait"),
    ] {
        let message = refusal(&text(&steps), &threads(64), &[]);
        assert!(message.contains(words), "{steps:?}\n{message}");
    }
}

#[test]
fn instructions_of_another_architecture() {
    let wgmma = kernel(0, "wgmma.fence.sync.aligned;");
    let tcgen = kernel(0, "tcgen05.wait::ld.sync.aligned;");
    let wide = kernel(
        1,
        "ld.param.u64 %d1, [p0]; ld.global.v4.u64 {%d2, %d3, %d4, %d5}, [%d1];",
    );
    let run = |text: &str| execute(text, &threads(128), &mut [vec![0; 8]]);
    let refused = |text: &str| run(text).unwrap_err().to_string();
    for (text, own, others) in [
        (&wgmma, "sm_90a", ["sm_100a", "sm_90"]),
        (&tcgen, "sm_100a", ["sm_90a", "sm_100"]),
    ] {
        for other in others {
            let error = refused(&text.replace(own, other));
            assert!(
                error.contains(&format!("{other} does not have it")),
                "{error}"
            );
        }
    }
    run(&wide).unwrap();
    let error = refused(&wide.replace("sm_100a", "sm_90a"));
    assert!(
        error.contains("an access of 32 bytes; 16 are the most"),
        "{error}"
    );
    let error = refused(&wide.replace("ld.global", "ld.shared"));
    assert!(
        error.contains("an access of 32 bytes; 16 are the most"),
        "{error}"
    );
}

#[test]
pub fn launches_that_do_not_suit_the_kernel() {
    let text = kernel(0, "");
    for (launch, words) in [
        (
            Launch {
                block: [1025, 1, 1],
                ..Launch::default()
            },
            "1025 threads",
        ),
        (
            Launch {
                grid: [3, 1, 1],
                cluster: [2, 1, 1],
                ..Launch::default()
            },
            "not a multiple",
        ),
        (
            Launch {
                grid: [0, 1, 1],
                ..Launch::default()
            },
            "grid of [0, 1, 1]",
        ),
        (
            Launch {
                dynamic_shared_bytes: 300_000,
                ..Launch::default()
            },
            "shared memory per block",
        ),
    ] {
        let error = execute(&text, &launch, &mut []).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for (directive, words) in [
        (
            ".reqntid 64",
            "blocks of [32, 1, 1]; the kernel was compiled for [64, 1, 1]",
        ),
        (".reqntid 16, 2", "compiled for [16, 2, 1]"),
        (
            ".maxntid 16",
            "32 threads per block; the kernel was compiled for 16",
        ),
        (
            ".maxclusterrank 1",
            "2 blocks in a cluster; the kernel was compiled for 1",
        ),
        (
            ".reqnctapercluster 4",
            "clusters of [2, 1, 1]; the kernel was compiled for [4, 1, 1]",
        ),
    ] {
        let launch = Launch {
            grid: [2, 1, 1],
            cluster: [2, 1, 1],
            ..threads(32)
        };
        let text = text.replace("k()", &format!("k() {directive}"));
        let error = execute(&text, &launch, &mut []).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    execute(
        &text.replace("k()", "k() .maxntid 4294967295, 4294967295 .reqntid 32"),
        &threads(32),
        &mut [],
    )
    .unwrap();
    let error = execute(&text, &Launch::default(), &mut [vec![0]])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("8 bytes of parameters; the kernel takes 0"),
        "{error}"
    );
}

#[test]
pub fn a_grid_is_the_same_on_several_cores() {
    let text = kernel(
        2,
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 64, %r2;
         ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r3, 4, %d1; mul.lo.u32 %r4, %r3, %r3; st.global.u32 [%d2], %r4;
         ld.param.u64 %d3, [p1]; atom.global.add.u32 %r5, [%d3], 1;",
    );
    let mut buffers = [vec![0; 640], vec![0]];
    let launch = Launch {
        grid: [10, 1, 1],
        workers: 4,
        ..threads(64)
    };
    let report = execute(&text, &launch, &mut buffers).unwrap();
    assert_eq!(
        buffers[0],
        (0..640).map(|n: u32| n * n).collect::<Vec<u32>>()
    );
    assert_eq!((buffers[1][0], report.clusters), (640, 10));
    assert_eq!(report.counters.forms["st.global.u32"], 640);
}

#[test]
fn registers_of_the_driver_end_a_kernel_that_reads_them() {
    let text = |condition: u32| {
        kernel(
            0,
            &format!(
                "mov.u32 %r1, {condition}; setp.ne.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r2, %envreg2; END:"
            ),
        )
    };
    execute(&text(1), &threads(32), &mut []).unwrap();
    let message = refusal(&text(0), &threads(32), &[]);
    assert!(message.contains("%envreg2 is the driver's"), "{message}");
    let message = refusal(&text(1).replace("envreg2", "envreg32"), &threads(32), &[]);
    assert!(message.contains("%envreg32"), "{message}");
}

#[test]
fn counts_of_single_blocks() {
    // Block b of three, in a cluster of its own or of all, meets at the barrier b + 1 times and stores once each time.
    let text = kernel(
        1,
        "ld.param.u64 %d1, [p0]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 64, %r2;
         mad.wide.u32 %d2, %r3, 4, %d1;
         AGAIN: bar.sync 0; st.global.u32 [%d2], %r1; sub.s32 %r1, %r1, 1; setp.ge.s32 %p1, %r1, 0; @%p1 bra AGAIN;",
    );
    for cluster in [1, 3] {
        let launch = Launch {
            grid: [3, 1, 1],
            cluster: [cluster, 1, 1],
            workers: 2,
            ..threads(64)
        };
        let report = execute(&text, &launch, &mut [vec![0; 192]]).unwrap();
        let mut found = report.counters.per_block.clone();
        assert_eq!((found.blocks, found.products.total), (3, 0));
        let spread = |total, most| Spread { total, most };
        assert_eq!(found.bytes["global written"], spread(6 * 256, 3 * 256));
        assert_eq!(found.waits["barrier"], spread(12, 6));
        let instructions = found.thread_instructions;
        assert_eq!(instructions.total, report.counters.thread_instructions);
        // The last branch is not taken, and ret is one more.
        assert_eq!(instructions.most, 64 * (5 + 3 * 5 - 1 + 1));
        // Further launches add blocks; the most is that of any block.
        found.add(&report.counters.per_block);
        assert_eq!(found.blocks, 6);
        assert_eq!(found.waits["barrier"], spread(24, 6));
        let footprint = Footprint {
            threads: 64,
            cluster_blocks: cluster,
            ..Footprint::default()
        };
        assert_eq!(report.counters.launch, footprint);
    }
}
