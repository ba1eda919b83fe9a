//! Kernels whose text was damaged: refused, found out, or run to an end, but never a panic.

use super::tensor_cores::{instruction, product};
use super::{execute, kernel, threads};
use crate::random::Random;
use crate::{Launch, Schedule};

/// A text with one to three words gone, doubled, exchanged or replaced.
fn damaged(text: &str, random: &mut Random) -> String {
    const WORDS: [&str; 24] = [
        "0",
        "-1",
        "4294967295",
        "18446744073709551615",
        "0f7F800000",
        "{",
        "}",
        ";",
        ",",
        "[",
        "]",
        "@%p1",
        "%r1",
        "%d1",
        "%f1",
        "%p1",
        "_",
        "[%r1]",
        "[%d1+9223372036854775807]",
        "bar.sync",
        "bra",
        "ret;",
        "mov.b64",
        "{%r1,%r2}",
    ];
    let mut words: Vec<&str> = text.split_inclusive([' ', '\n', ';', ',']).collect();
    for _ in 0..1 + random.below(3) {
        let (at, other) = (
            random.below(words.len() as u32) as usize,
            random.below(words.len() as u32) as usize,
        );
        match random.below(4) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[other]),
            2 => words.swap(at, other),
            _ => words[at] = WORDS[random.below(WORDS.len() as u32) as usize],
        }
    }
    words.concat()
}

#[test]
fn damage_is_never_a_panic() {
    let copies = kernel(
        2,
        ".shared .align 128 .b8 room[512]; .shared .align 8 .b64 bar; .local .align 8 .b8 own[64];
         mov.u32 %r90, room; mov.u32 %r91, bar; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; setp.eq.u32 %p9, %r1, 0;
         mov.u32 %r8, 1; @%p9 mbarrier.init.shared::cta.b64 [%r91], %r8; fence.proxy.async; bar.sync 0;
         mad.wide.u32 %d3, %r1, 8, %d1; ld.global.v2.u32 {%r3, %r4}, [%d3]; cvt.rn.bf16x2.f32 %r5, %f1, %f2;
         cp.async.ca.shared.global [%r90], [%d3], 4; cp.async.commit_group; cp.async.wait_group 0;
         shfl.sync.bfly.b32 %r6|%p2, %r3, 1, 31, -1; lop3.b32 %r7, %r3, %r4, %r5, 0x96; prmt.b32 %r8, %r3, %r4, 0x3210;
         bfe.u32 %r9, %r3, 40, %r4; shl.b32 %r10, %r3, 77; shf.l.wrap.b32 %r11, %r3, %r4, 99; div.u32 %r12, %r3, %r4;
         rem.s64 %d4, %d1, %d3; bfi.b32 %r13, %r3, %r4, 99, 99; mul.hi.s64 %d5, %d3, %d4; st.local.u32 [own+60], %r3;
         @%p9 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 64;
         @%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%d1], 64, [%r91];
         W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra W;
         ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r90];
         mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
             {%f1, %f2, %f3, %f4}, {%r20, %r21, %r22, %r23}, {%r20, %r21}, {%f1, %f2, %f3, %f4};
         atom.global.add.u32 %r30, [%d1], 1; vote.sync.ballot.b32 %r31, %p1, -1;",
    );
    let mma = "tcgen05.mma.cta_group::1.kind::f16 [%r7], %d6, %d7, %r8, %p4;";
    let texts = [copies, product(mma, instruction(1, 1, 8 << 24), "")];
    let mut random = Random::new(7, 0);
    let mut refused = 0;
    const ROUNDS: usize = 400;
    for round in 0..ROUNDS {
        let text = damaged(&texts[round % 2], &mut random);
        let schedules = [Schedule::AtOnce, Schedule::Late { seed: 1 }];
        let launch = Launch {
            schedule: schedules[round / 2 % 2],
            limit: 1 << 18,
            ..threads(128)
        };
        let result = execute(&text, &launch, &mut [vec![0; 2048], vec![0; 4096]]);
        if let Err(error) = result {
            refused += 1;
            assert!(!error.to_string().is_empty());
        }
    }
    assert!(
        refused > ROUNDS / 4 && refused < ROUNDS,
        "{refused} of {ROUNDS}"
    );
}

#[test]
fn sizes_without_sense_are_refused_in_a_sentence() {
    let modifiers = ".x".repeat(70);
    let signs = "-".repeat(100_000);
    let brackets = "[".repeat(100_000);
    let blocks = "{".repeat(100_000);
    let parameters = ".param .b8 q[1048576], ".repeat(5000);
    let cases = [
        (format!("add{modifiers}.u32 %r1, %r1, 1;"), "modifier .x"),
        (
            format!("add.u32 %r1, %r1, {signs}1;"),
            "operands nest deeper",
        ),
        (
            format!("ld.global.u32 %r1, {brackets}%d1;"),
            "operands nest deeper",
        ),
        (blocks, "blocks nest deeper"),
        ("mov.b128 {%d1, %d2}, %d3;".to_owned(), "2 parts of B128"),
        ("mov.b32 {%h1, %h2, %h3}, %r1;".to_owned(), "3 parts of B32"),
        (
            format!("mov.b32 {{%h1{}}}, %r1;", ", %h1".repeat(40)),
            "41 parts of B32",
        ),
        (
            ".local .align 4294967296 .b8 l[4]; mov.u64 %d1, l;".to_owned(),
            "an alignment of 4294967296",
        ),
        (
            ".local .b8 l[4294967296]; mov.u64 %d1, l;".to_owned(),
            "4294967296 bytes of local memory",
        ),
        (
            ".shared .b8 s[4294967296]; mov.u64 %d1, s;".to_owned(),
            "4294967296 bytes of shared memory",
        ),
        (
            ".shared .align 9223372036854775808 .b8 s[4]; mov.u64 %d1, s;".to_owned(),
            "an alignment",
        ),
        (
            ".reg .b32 %a<1048575>; .reg .b32 %b<1048575>;".to_owned(),
            "registers; 1048576 are supported",
        ),
    ];
    let refused = |text: &str| {
        let error = execute(text, &threads(32), &mut []).expect_err("it makes no sense");
        error.to_string()
    };
    for (body, words) in &cases {
        let message = refused(&kernel(0, body));
        assert!(message.contains(words), "{words}: {message:.300}");
    }
    let heads = [
        (
            ".param .align 4294967296 .b8 q[4]".to_owned(),
            "an alignment",
        ),
        (
            ".param .b8 q[4096], ".repeat(9).replace("q", "q0"),
            "declared twice",
        ),
        (
            (0..9).map(|n| format!(".param .b8 q{n}[4096], ")).collect(),
            "36864 bytes of parameters",
        ),
        (parameters, "declared twice"),
    ];
    for (head, words) in heads {
        let message = refused(&kernel(0, "").replace("k()", &format!("k({head})")));
        assert!(message.contains(words), "{words}: {message:.300}");
    }
    // Each function calls the next one twice.
    let functions: String = (0..31)
        .rev()
        .map(|n| match n {
            30 => ".func f30() { ret; }\n".to_owned(),
            _ => format!(
                ".func f{n}() {{ call f{}; call f{}; ret; }}\n",
                n + 1,
                n + 1
            ),
        })
        .collect();
    let text = kernel(0, "call f0;").replace(".visible", &format!("{functions}.visible"));
    assert!(refused(&text).contains("with its calls filled in"));
    let text = kernel(0, "call f;").replace(".visible", ".func f() { call f; ret; }\n.visible");
    assert!(refused(&text).contains("recursion is not supported"));
    let text = kernel(0, "").replace(".visible", ".global .b8 g[1099511627775];\n.visible");
    assert!(refused(&text).contains("variables of 1099511627775 bytes in all"));
}
