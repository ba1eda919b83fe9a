//! `tcgen05.shift`: which rows of tensor memory move, in whose, and until when.

use super::tensor_forms::warp;
use super::{execute, kernel, late, threads, SCHEDULES};
use crate::launch::Queue;
use crate::{Error, Launch, Schedule, Watch};

const WAIT: &str =
    "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r91], 0; @!%p5 bra AGAIN;";

/// A warp whose lanes hold 1000 * lane + column: rows of 32 bytes from column 4 on move, and 16 columns are shown.
fn of_one_warp() -> String {
    let names: Vec<String> = (20..36).map(|number| format!("%r{number}")).collect();
    let body = format!(
        "add.u32 %r80, %r7, 4; @%p3 tcgen05.shift.cta_group::1.down [%r80];
         @%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r91];
         {WAIT} tcgen05.fence::after_thread_sync;
         tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{}}}, [%r7]; tcgen05.wait::ld.sync.aligned;",
        names.join(",")
    );
    warp(&body, 16)
}

fn shifted(text: &str, launch: Launch) -> Result<bool, Error> {
    let mut buffers = [vec![0; 2048], vec![0; 512]];
    execute(text, &launch, &mut buffers)?;
    let wanted = |at: usize| {
        let (lane, column) = (at / 16, at % 16);
        let moves = (4..12).contains(&column) && lane < 31;
        1000 * (lane + usize::from(moves)) + column
    };
    let mut words = buffers[1].iter().enumerate();
    Ok(words.all(|(at, word)| *word as usize == wanted(at)))
}

fn under(schedule: Schedule, races: Watch) -> Launch {
    Launch {
        schedule,
        races,
        ..threads(32)
    }
}

#[test]
fn rows_but_the_last_take_over_the_next() {
    for schedule in SCHEDULES {
        let right = shifted(&of_one_warp(), under(schedule, Watch::All));
        assert!(right.unwrap(), "{schedule:?}");
    }
    let unaligned = of_one_warp().replace("%r7, 4;", "%r7, 0x100004;");
    let error = shifted(&unaligned, threads(32)).unwrap_err().to_string();
    assert!(error.contains("a shift from lane 16"), "{error}");
    let outside = of_one_warp().replace("%r7, 4;", "%r7, 60;");
    let error = shifted(&outside, threads(32)).unwrap_err().to_string();
    assert!(error.contains("is not allocated"), "{error}");
}

#[test]
fn a_shift_lasts_until_its_commit_is_heard_of() {
    let early = of_one_warp().replace(WAIT, "");
    for schedule in [Schedule::Late { seed: 1 }, late(Queue::Products)] {
        let right = shifted(&early, under(schedule, Watch::Off));
        assert!(!right.unwrap_or(false), "{schedule:?}");
    }
    let error = shifted(&early, threads(32)).unwrap_err().to_string();
    assert!(
        error.contains("race: ") && error.contains("by tcgen05 of block 0"),
        "{error}"
    );
}

/// Two blocks of four warps whose lanes hold 1000 * rank + lane: the first shifts lanes 64 to 95 of some.
fn of_a_pair(group: u32) -> Vec<u32> {
    let text = kernel(
        1,
        &format!(
            ".shared .align 8 .b64 bar; .shared .align 4 .b32 base; mov.u32 %r91, bar; mov.u32 %r92, base;
             mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32;
             setp.eq.and.u32 %p3, %r2, 0, %p1; mov.u32 %r5, 32; mov.u32 %r6, 1; mov.b16 %h1, 3;
             @%p1 mbarrier.init.shared::cta.b64 [%r91], %r6; @%p1 fence.mbarrier_init.release.cluster;
             @!%p2 bra MADE; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r92], %r5;
             MADE: bar.sync 0; ld.shared.u32 %r7, [%r92]; shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21;
             add.u32 %r10, %r7, %r9; mad.lo.u32 %r3, %r2, 1000, %r1;
             tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], {{%r3,%r3,%r3,%r3,%r3,%r3,%r3,%r3}};
             tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;
             barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             tcgen05.fence::after_thread_sync; add.u32 %r11, %r7, 0x400000;
             @%p3 tcgen05.shift.cta_group::{group}.down [%r11];
             @%p3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r91], %h1;
             WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r91], 0; @!%p5 bra WAIT;
             tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r20}}, [%r10];
             tcgen05.wait::ld.sync.aligned; ld.param.u64 %d1, [p0]; mad.lo.u32 %r21, %r2, 128, %r1;
             mad.wide.u32 %d2, %r21, 4, %d1; st.global.u32 [%d2], %r20;
             barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             @!%p2 bra GONE; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r7, %r5; GONE:"
        ),
    );
    let mut buffers = [vec![0; 256]];
    for schedule in SCHEDULES {
        let launch = Launch {
            grid: [2, 1, 1],
            cluster: [2, 1, 1],
            schedule,
            ..threads(128)
        };
        execute(&text, &launch, &mut buffers)
            .unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
    }
    let [found] = buffers;
    found
}

#[test]
fn one_block_or_both_of_a_pair() {
    for group in [1, 2] {
        for (at, word) in of_a_pair(group).into_iter().enumerate() {
            let (rank, lane) = (at / 128, at % 128);
            let moves = rank < group as usize && (64..95).contains(&lane);
            let wanted = 1000 * rank + lane + usize::from(moves);
            assert_eq!(word as usize, wanted, "group {group} block {rank} {lane}");
        }
    }
}

/// What other tests take for granted.
pub fn all() {
    rows_but_the_last_take_over_the_next();
    one_block_or_both_of_a_pair();
}
