//! Accesses that nothing orders are found under every schedule; those that something orders never are.

use super::{execute, kernel, threads, SCHEDULES};
use crate::Launch;

/// Each thread stores a word, something happens, and each loads the word of thread `tid ^ 33`.
fn exchange(between: &str) -> String {
    kernel(
        2,
        &format!(
            ".shared .align 16 .b8 room[512]; .shared .align 8 .b64 bar; mov.u32 %r90, room; mov.u32 %r91, bar;
             mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];
             setp.eq.u32 %p9, %r1, 0; shr.u32 %r2, %r1, 5; setp.eq.u32 %p8, %r2, 0;
             mad.lo.u32 %r3, %r1, 4, %r90; st.shared.u32 [%r3], %r1;
             {between}
             xor.b32 %r4, %r1, 33; mad.lo.u32 %r5, %r4, 4, %r90; ld.shared.u32 %r6, [%r5];"
        ),
    )
}

fn verdicts(text: &str, launch: &Launch) -> Vec<Result<(), String>> {
    SCHEDULES
        .iter()
        .map(|schedule| {
            let launch = Launch {
                schedule: *schedule,
                ..launch.clone()
            };
            execute(text, &launch, &mut [vec![1; 64], vec![0; 64]])
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .collect()
}

fn assert_clean(text: &str, launch: &Launch) {
    for verdict in verdicts(text, launch) {
        verdict.unwrap();
    }
}

fn assert_race(text: &str, launch: &Launch, words: &[&str]) {
    for verdict in verdicts(text, launch) {
        let error = verdict.expect_err("nobody noticed");
        for word in words.iter().chain(&["race: "]) {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

#[test]
pub fn threads_of_a_block() {
    assert_clean(&exchange("bar.sync 0;"), &threads(64));
    assert_race(
        &exchange(""),
        &threads(64),
        &[
            "of shared +",
            "is not ordered with",
            "st.shared.u32",
            "ld.shared.u32",
            "thread",
        ],
    );
    // Named barriers: one warp arrives, the other waits, and knows; the first does not.
    let half = "@%p8 bra A; bar.sync 1, 64; bra B; A: bar.arrive 1, 64; B:";
    assert_race(
        &exchange(half),
        &threads(64),
        &["ld.shared.u32", "st.shared.u32"],
    );
    let both = "@%p8 bra A; bar.sync 1, 64; bar.arrive 2, 64; bra B; A: bar.arrive 1, 64; bar.sync 2, 64; B:";
    assert_clean(&exchange(both), &threads(64));
}

#[test]
pub fn lanes_of_a_warp() {
    let swap = |between: &str| exchange(between).replace("%r1, 33", "%r1, 1");
    assert_clean(&swap("bar.warp.sync -1;"), &threads(32));
    assert_race(&swap(""), &threads(32), &["by thread 0 of block 0"]);
    let shuffle = "shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1;";
    assert_race(&swap(shuffle), &threads(32), &["is not ordered with"]);
}

#[test]
pub fn mbarriers() {
    let made =
        "@!%p9 bra M; mov.u32 %r8, 64; mbarrier.init.shared::cta.b64 [%r91], %r8; M: bar.sync 0;
        st.shared.u32 [%r3], %r1; mbarrier.arrive.shared::cta.b64 %d9, [%r91];";
    let wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra W;";
    assert_clean(&exchange(&format!("{made}{wait}")), &threads(64));
    assert_race(&exchange(made), &threads(64), &["is not ordered with"]);
    // Neither end of the order may be relaxed.
    for (strong, relaxed) in [
        ("mbarrier.arrive.", "mbarrier.arrive.relaxed.cta."),
        (
            "mbarrier.try_wait.parity.",
            "mbarrier.try_wait.parity.relaxed.cta.",
        ),
    ] {
        let text = exchange(&format!("{made}{wait}")).replace(strong, relaxed);
        assert_race(&text, &threads(64), &["st.shared.u32", "ld.shared.u32"]);
    }
    // What was an mbarrier until a store fell on it.
    let gone = made.replace(
        "st.shared.u32 [%r3], %r1;",
        "@%p9 st.shared.u8 [%r91+7], %h1; bar.sync 0;",
    );
    for verdict in verdicts(&exchange(&format!("{gone}{wait}")), &threads(64)) {
        let error = verdict.unwrap_err();
        assert!(error.contains("or it was overwritten"), "{error}");
    }
    // The phase before the first is over, but brings nothing.
    let wrong = wait.replace("[%r91], 0", "[%r91], 1");
    assert_race(
        &exchange(&format!("{made}{wrong}")),
        &threads(64),
        &["is not ordered with"],
    );
    let early = made.replace("M: bar.sync 0;", "M:");
    let used = SCHEDULES.len();
    let found = verdicts(&exchange(&format!("{early}{wait}")), &threads(64))
        .into_iter()
        .filter_map(Result::err)
        .filter(|error| error.contains("mbarrier"));
    assert_eq!(found.count(), used);
}

#[test]
pub fn copies_of_threads() {
    let copy =
        "bar.sync 0; mad.wide.u32 %d3, %r1, 4, %d1; cp.async.ca.shared.global [%r3], [%d3], 4;
        cp.async.commit_group;";
    let waited = format!("{copy} cp.async.wait_group 0; bar.sync 0;");
    assert_clean(&exchange(&waited), &threads(64));
    for fault in ["cp.async.wait_group 0;", "wait_group 0; bar.sync 0;"] {
        let left = if fault.starts_with("cp") {
            ""
        } else {
            "wait_group 0;"
        };
        let text = exchange(&waited.replace(fault, left));
        assert_race(&text, &threads(64), &["by cp.async of thread"]);
    }
}

#[test]
pub fn bulk_copies() {
    let load = "bar.sync 0; @!%p9 bra M; mov.u32 %r8, 1; mbarrier.init.shared::cta.b64 [%r91], %r8;
        fence.proxy.async.shared::cta; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 256;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%d1], 256, [%r91]; M: bar.sync 0;";
    let wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra W;";
    // What threads wrote before is overwritten: each must have fenced it.
    let fenced = format!("fence.proxy.async.shared::cta;{load}{wait}");
    assert_clean(&exchange(&fenced), &threads(64));
    assert_race(
        &exchange(&format!("{load}{wait}").replace(
            "fence.proxy.async",
            "fence.mbarrier_init.release.cluster;//",
        )),
        &threads(64),
        &["without fence.proxy.async", "cp.async.bulk"],
    );
    assert_race(
        &exchange(&fenced.replace(wait, "")),
        &threads(64),
        &["by the copy for mbarrier +", "ld.shared.u32"],
    );
    let unfenced = fenced.replacen(
        "[%r91], %r8;\n        fence.proxy.async.shared::cta;",
        "[%r91], %r8;",
        1,
    );
    assert_race(
        &exchange(&unfenced),
        &threads(64),
        &["copies may not see yet"],
    );
}

#[test]
pub fn bulk_stores() {
    let store = "fence.proxy.async.shared::cta; bar.sync 0;
        @!%p9 bra GO; cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r90], 256; cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0; GO: bar.sync 0; st.shared.u32 [%r3], %r1; bar.sync 0;";
    assert_clean(&exchange(store), &threads(64));
    assert_race(
        &exchange(&store.replace("fence.proxy.async.shared::cta;", "")),
        &threads(64),
        &[
            "read by the bulk copy of thread 0",
            "without fence.proxy.async after the write by thread 0",
        ],
    );
    assert_race(
        &exchange(&store.replace("cp.async.bulk.wait_group.read 0;", "")),
        &threads(64),
        &["write by thread", "read by the bulk copy of thread 0"],
    );
    // Who issues it may also fence, after the barrier.
    let late = store.replace(
        "fence.proxy.async.shared::cta; bar.sync 0;",
        "bar.sync 0; fence.proxy.async.shared::cta;",
    );
    assert_clean(&exchange(&late), &threads(64));
}

#[test]
pub fn blocks_of_a_cluster() {
    let meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
    let text = |arrive: &str| {
        exchange(&format!(
            "bar.sync 0; {meet} mov.u32 %r80, %cluster_ctarank; xor.b32 %r81, %r80, 1;
             mapa.shared::cluster.u32 %r82, %r3, %r81; st.shared::cluster.u32 [%r82], %r1;
             barrier.cluster.arrive.{arrive}.aligned; barrier.cluster.wait.acquire.aligned;"
        ))
        .replace(
            "ld.shared.u32 %r6, [%r5];",
            &format!("ld.shared.u32 %r6, [%r5]; {meet}"),
        )
    };
    let launch = Launch {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..threads(64)
    };
    assert_clean(&text("release"), &launch);
    assert_race(
        &text("relaxed"),
        &launch,
        &["of block 1", "st.shared::cluster"],
    );
}

#[test]
pub fn atomics_may_meet_and_order_what_was_before() {
    let counted = "bar.sync 0; atom.shared.add.u32 %r7, [%r90], 1; bar.sync 0;";
    assert_clean(&exchange(counted), &threads(64));
    let bare = "bar.sync 0; atom.shared.add.u32 %r7, [%r90], 1;";
    assert_race(&exchange(bare), &threads(64), &["atom.shared"]);
}

/// Two blocks of a grid: block 0 writes a word of p0, block 1 reads it, each with one thread.
fn hand_over(writer: &str, reader: &str) -> String {
    kernel(
        2,
        &format!(
            "mov.u32 %r1, %ctaid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; setp.ne.u32 %p1, %r1, 0;
             @%p1 bra R; st.global.u32 [%d1], %r1; {writer} bra E; R: {reader} ld.global.u32 %r3, [%d1]; E:"
        ),
    )
}

fn grid(blocks: u32) -> Launch {
    Launch {
        grid: [blocks, 1, 1],
        ..threads(1)
    }
}

#[test]
pub fn blocks_of_a_grid() {
    let release = "atom.acq_rel.gpu.global.add.u32 %r2, [%d2], 1;";
    assert_clean(&hand_over(release, release), &grid(2));
    assert_race(
        &hand_over("", ""),
        &grid(2),
        &[
            "of global 0x",
            "ld.global.u32",
            "st.global.u32",
            "of cluster 0",
        ],
    );
    // Relaxed atomics pass on what a fence before them told, and bring it with the next fence.
    let (told, heard) = (
        "membar.gl; atom.global.add.u32 %r2, [%d2], 1;",
        "atom.global.add.u32 %r2, [%d2], 1; fence.acq_rel.gpu;",
    );
    assert_clean(&hand_over(told, heard), &grid(2));
    assert_race(&hand_over(&told[11..], heard), &grid(2), &["ld.global.u32"]);
    let unfenced = heard.replace("fence.acq_rel.gpu;", "fence.acq_rel.cta;");
    assert_race(&hand_over(told, &unfenced), &grid(2), &["ld.global.u32"]);
    // A scope that does not reach the other block.
    let near = "atom.relaxed.cta.global.add.u32 %r2, [%d2], 1;";
    assert_race(&hand_over(near, near), &grid(2), &["atom.relaxed.cta"]);
    // A third block learns of the first by way of the second.
    let chain = hand_over(release, release).replace("ld.global.u32 %r3", "@%p1 ld.global.u32 %r3");
    assert_clean(&chain, &grid(3));
}

#[test]
pub fn bulk_stores_to_global_memory() {
    let store = |wait: &str, fence: &str| {
        exchange(&format!(
            "fence.proxy.async.shared::cta; bar.sync 0;
             @!%p9 bra GO; cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r90], 256;
             cp.async.bulk.commit_group; cp.async.bulk.wait_group{wait} 0; GO: bar.sync 0;
             mad.wide.u32 %d3, %r1, 4, %d2; ld.global.u32 %r20, [%d3]; {fence}"
        ))
    };
    assert_clean(&store("", ""), &threads(64));
    // The source was read; the store may not have landed.
    assert_race(
        &store(".read", ""),
        &threads(64),
        &["write by the bulk copy of thread 0", "ld.global.u32"],
    );
    // Stores of threads, then a copy of them by the async proxy.
    let load = |fence: &str| {
        exchange(&format!(
            "mad.wide.u32 %d3, %r1, 4, %d2; st.global.u32 [%d3], %r1; {fence} bar.sync 0;
             @!%p9 bra M; mov.u32 %r8, 1; mbarrier.init.shared::cta.b64 [%r91], %r8;
             fence.proxy.async; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 16;
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%d2], 16, [%r91];
             W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra W; M: bar.sync 0;"
        ))
    };
    assert_clean(&load("fence.proxy.async;"), &threads(64));
    let unfenced = load("").replace(
        "fence.proxy.async; mbarrier",
        "fence.mbarrier_init.release.cluster; mbarrier",
    );
    assert_race(&unfenced, &threads(64), &["fence.proxy.async"]);
    // A fence of one memory is none of the other.
    let second = "fence.proxy.async; mbarrier";
    let global = load("fence.proxy.async.global;");
    let shared = "fence.proxy.async.shared::cta; mbarrier";
    assert_clean(&global.replace(second, shared), &threads(64));
    let of_global = load("").replace(second, shared);
    let words = ["without fence.proxy.async after", "of global 0x"];
    assert_race(&of_global, &threads(64), &words);
    let of_shared = global.replace(second, "fence.mbarrier_init.release.cluster; mbarrier");
    let words = ["without fence.proxy.async after", "of shared +0"];
    assert_race(&of_shared, &threads(64), &words);
}

#[test]
pub fn a_launch_that_overlaps_the_one_before() {
    let text = kernel(
        2,
        "ld.param.u64 %d1, [p0]; ld.global.u32 %r1, [%d1]; griddepcontrol.wait;",
    );
    let module = crate::Module::load(&text).unwrap();
    let (allocations, room) = (crate::Allocations::default(), crate::Block::filled(1024, 0));
    // SAFETY: the block outlives the launches and nobody looks at it meanwhile.
    unsafe { allocations.allow(room.address(), 1024) };
    let run = |text: &crate::Module, before| {
        let launch = Launch {
            parameters: [room.address(); 2]
                .iter()
                .flat_map(|at| at.to_le_bytes())
                .collect(),
            before,
            ..threads(1)
        };
        crate::run(text, "k", &launch, &allocations)
    };
    let writes = kernel(2, "ld.param.u64 %d1, [p0]; st.global.u32 [%d1], 1;");
    let writer = crate::Module::load(&writes).unwrap();
    let before = run(&writer, None).unwrap().touched;
    run(&module, None).unwrap();
    let error = run(&module, before.clone()).unwrap_err().to_string();
    assert!(error.contains("before griddepcontrol.wait"), "{error}");
    let waits = text.replace(
        "ld.global.u32 %r1, [%d1]; griddepcontrol.wait;",
        "griddepcontrol.wait; ld.global.u32 %r1, [%d1];",
    );
    run(&crate::Module::load(&waits).unwrap(), before).unwrap();
}
