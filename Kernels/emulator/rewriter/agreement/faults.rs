//! That a wrong emulation would be noticed, and that what is not known is refused.

use machine::Schedule;

use super::products::case;
use super::{descriptor, instruction, kernel, BRAIN};
use crate::{rewrite, Options, When};

#[test]
fn faults_are_noticed() {
    let issue = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    let (a, b) = (descriptor(0, 16, 1024, 2), descriptor(32768, 16, 1024, 2));
    let case = case(issue, a, b, instruction(128, 64, 1, 1, 0), BRAIN);
    let wanted = case.wanted();
    for (when, right, wrong, notice) in [
        // A product takes its neighbour's column.
        (
            When::AtOnce,
            "fma.rn.f32 sum9, av1, bv1, sum9;",
            "fma.rn.f32 sum9, av1, bv2, sum9;",
            "word ",
        ),
        // Operands are read as if they were not swizzled.
        (When::AtOnce, "xor.b32 at, at, x;", "", "word "),
        // The accumulator is not added.
        (
            When::AtOnce,
            "@adds ld.relaxed.gpu",
            "@!adds ld.relaxed.gpu",
            "word ",
        ),
        // Nobody is told of the end.
        (
            When::AtOnce,
            "call emulated_commit, (emulated_p0, emulated_p1);",
            "",
            "deadlock",
        ),
        // Late work is never done.
        (When::Late, "call emulated_flush;", "", "deadlock"),
    ] {
        let text = case.rewritten(when);
        assert!(text.contains(right), "the fault has a place: {right}");
        let text = text.replace(right, wrong);
        let found = case.difference(&text, Schedule::AtOnce, &wanted);
        assert!(
            found.as_deref().is_some_and(|found| found.contains(notice)),
            "{right}: {found:?}"
        );
    }
}

fn refusal(text: &str) -> String {
    rewrite(text, &Options::default())
        .expect_err("a refusal")
        .to_string()
}

#[test]
fn unknown_instructions_are_refused_by_name() {
    let message = refusal(&kernel(
        0,
        "mov.u32 %r1, 0;\ntcgen05.shift.cta_group::1.up [%r1];",
    ));
    assert!(
        message.starts_with("k: PTX line 8: tcgen05.shift.cta_group::1.up: "),
        "{message}"
    );
    let unused = ".func unused() { .reg .b32 r; mov.u32 r, 0; ret; }\n";
    let message = refusal(&(kernel(0, "") + unused));
    assert!(
        message.starts_with("unused: PTX line 10: mov.u32: "),
        "{message}"
    );
}

#[test]
fn other_targets_are_refused() {
    let message = refusal(&kernel(0, "").replace("sm_100a", "sm_90a"));
    assert_eq!(
        message,
        "the module is for sm_90a; only sm_100a is rewritten"
    );
}
