//! Tensor memory: what products, loads and stores of warps may do without waiting for each other, and what not.

use super::tensor_cores::{instruction, product};
use super::{execute, threads, SCHEDULES};
use crate::Launch;

fn verdicts(text: &str) -> Vec<Result<(), String>> {
    let run = |schedule| {
        let launch = Launch {
            schedule,
            ..threads(128)
        };
        execute(text, &launch, &mut [vec![0; 2048], vec![0; 4096]])
            .map(drop)
            .map_err(|error| error.to_string())
    };
    SCHEDULES.into_iter().map(run).collect()
}

fn assert_race(text: &str, words: &[&str]) {
    for verdict in verdicts(text) {
        let error = verdict.expect_err("nobody noticed");
        for word in words.iter().chain(&["race: ", "tensor memory at lane"]) {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

#[test]
fn each_link_of_the_chain_is_needed() {
    let text = product(
        "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;",
        instruction(1, 1, 8 << 24),
        "",
    );
    for verdict in verdicts(&text) {
        verdict.unwrap();
    }
    let after = "tcgen05.fence::after_thread_sync;";
    // A kernel without the fence is judged by its waits; one that has it elsewhere is held to it.
    for verdict in verdicts(&text.replace(after, "")) {
        verdict.unwrap();
    }
    let late = text.replace(after, "").replace(
        "bar.sync 0; @!%p2 bra GONE",
        "{after} bar.sync 0; @!%p2 bra GONE",
    );
    let late = late.replace("{after}", after);
    assert_race(&late, &["tcgen05.ld", "the write by tcgen05 of block 0"]);
    let early = text.replace("@!%p1 bra WAIT;", "");
    assert_race(&early, &["tcgen05.ld", "by tcgen05 of block 0"]);
    let unread = text.replace("tcgen05.wait::ld.sync.aligned;", "");
    assert_race(
        &unread,
        &["tcgen05.dealloc", "the read by tcgen05.ld of warp"],
    );
    let alone = text.replace("bar.sync 0; @!%p2 bra GONE", "@!%p2 bra GONE");
    for verdict in verdicts(&alone) {
        verdict.expect_err("others may still read what is given back");
    }
    // Stores over sums that a product may not have written yet, and stores that nobody waited for.
    let over = |wait: &str| {
        text.replace(
            "tcgen05.ld.sync",
            &format!(
                "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {{%r1}}; {wait} tcgen05.ld.sync"
            ),
        )
    };
    for verdict in verdicts(&over("tcgen05.wait::st.sync.aligned;")) {
        verdict.unwrap();
    }
    assert_race(
        &over(""),
        &["tcgen05.ld", "the write by tcgen05.st of warp"],
    );
}
