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
