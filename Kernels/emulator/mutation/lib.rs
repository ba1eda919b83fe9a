//! Faults to plant in a kernel's PTX: each changes one instruction as a slip of its author would.
//!
//! A gate that is worth its name notices them. Lines are changed in the text, so that a mutant goes the same way as the
//! kernel itself.

mod rules;
mod statement;
mod values;

use std::collections::BTreeSet;
use std::fmt;

use rules::{Around, Rule};
use statement::Statement;

/// What was done to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    DropCopyWait,
    DropBulkWait,
    WeakenProductWait,
    DropTensorWait,
    DropPhaseWait,
    FlipPhase,
    DropBarrier,
    DropWarpBarrier,
    DropClusterWait,
    RelaxClusterArrive,
    DropArrive,
    DropProxyFence,
    DropInitFence,
    DropProductFence,
    DropTensorFence,
    DropCommit,
    Swizzle,
    DescriptorSwizzle,
    DescriptorStride,
    DescriptorLead,
    InstructionField,
    TensorColumn,
    ScaleLayout,
    DepthAdvance,
    Accumulate,
    ArriveCount,
    ExpectedBytes,
    Bound,
    Offset,
    Sign,
    Extreme,
    Function,
    ShuffleStep,
    Constant,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::DropCopyWait => "no wait for cp.async",
            Self::DropBulkWait => "no wait for bulk copies",
            Self::WeakenProductWait => "one wgmma group fewer waited for",
            Self::DropTensorWait => "no wait for tensor memory",
            Self::DropPhaseWait => "no wait for an mbarrier",
            Self::FlipPhase => "an mbarrier's phase flipped",
            Self::DropBarrier => "no barrier of the block",
            Self::DropWarpBarrier => "no barrier of the warp",
            Self::DropClusterWait => "no wait for the cluster",
            Self::RelaxClusterArrive => "the cluster's arrival orders no memory",
            Self::DropArrive => "no arrival",
            Self::DropProxyFence => "no proxy fence",
            Self::DropInitFence => "no fence after mbarrier.init",
            Self::DropProductFence => "no wgmma.fence",
            Self::DropTensorFence => "no tcgen05.fence",
            Self::DropCommit => "no commit",
            Self::Swizzle => "wrong swizzle",
            Self::DescriptorSwizzle => "wrong swizzle of a descriptor",
            Self::DescriptorStride => "wrong stride of a descriptor",
            Self::DescriptorLead => "wrong leading offset of a descriptor",
            Self::InstructionField => "wrong field of an instruction descriptor",
            Self::TensorColumn => "wrong column of tensor memory",
            Self::ScaleLayout => "wrong place or layout of scales",
            Self::DepthAdvance => "wrong advance along k",
            Self::Accumulate => "does not accumulate",
            Self::ArriveCount => "one arrival more expected",
            Self::ExpectedBytes => "16 bytes more expected",
            Self::Bound => "a comparison off by one",
            Self::Offset => "an offset of an address forgotten",
            Self::Sign => "a sign flipped",
            Self::Extreme => "the smaller for the larger",
            Self::Function => "a special function left out",
            Self::ShuffleStep => "a shuffle's step changed",
            Self::Constant => "a constant doubled",
        })
    }
}

/// A line of a text, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// Counted from 1.
    pub line: u32,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    pub kind: Kind,
    pub change: Change,
}

/// What a kernel's author got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// Waits, barriers, fences, layouts, products.
    Order,
    /// Bounds, addresses and arithmetic of each thread.
    Value,
}

impl Slip {
    pub const ALL: &[Self] = &[Self::Order, Self::Value];

    fn rules(self) -> &'static [Rule] {
        match self {
            Self::Order => rules::RULES,
            Self::Value => values::RULES,
        }
    }
}

/// The mutants of the lines that a run has executed: at most `per_kind` of each kind, the first, the last and others
/// evenly between.
pub fn mutants(
    text: &str,
    executed: &BTreeSet<u32>,
    slips: &[Slip],
    per_kind: usize,
) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for rule in slips.iter().flat_map(|slip| slip.rules()) {
        let all: Vec<Mutant> = executed
            .iter()
            .filter_map(|line| {
                let at = (*line as usize).checked_sub(1)?;
                let statement = Statement::find(lines.get(at)?, rule.opcode)?;
                let text = (rule.change)(&statement, Around { lines: &lines, at })?;
                Some(Mutant {
                    kind: rule.kind,
                    change: Change { line: *line, text },
                })
            })
            .collect();
        let count = all.len().min(per_kind);
        let chosen = |number: usize| number * (all.len() - 1) / (count - 1).max(1);
        found.extend((0..count).map(|number| all[chosen(number)].clone()));
    }
    found.sort_by_key(|mutant| (mutant.kind, mutant.change.line));
    found
}

/// The text with a line changed.
pub fn apply(text: &str, change: &Change) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(line) = lines.get_mut((change.line as usize).wrapping_sub(1)) {
        *line = &change.text;
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(line: &str, following: &str) -> Vec<(Kind, String)> {
        // Sums that come from another product, and a flag that is not always zero.
        let before = "mma.sync.x {%f3,%f4}, {%r1}, {%r2}, {%f5};\nmov.u32 %r5, 1;";
        let text = format!("{before}\n{line}\n{following}\n");
        mutants(&text, &BTreeSet::from([3]), Slip::ALL, 1)
            .into_iter()
            .map(|mutant| (mutant.kind, mutant.change.text))
            .collect()
    }

    #[test]
    fn each_instruction_has_its_faults() {
        for (line, kind, wanted) in [
            ("cp.async.wait_group 2;", Kind::DropCopyWait, ""),
            ("@%p1 bar.sync 0;", Kind::DropBarrier, ""),
            ("cp.async.bulk.wait_group.read 0;", Kind::DropBulkWait, ""),
            ("fence.proxy.async.shared::cta;", Kind::DropProxyFence, ""),
            (
                "wgmma.wait_group.sync.aligned 0;",
                Kind::WeakenProductWait,
                "wgmma.wait_group.sync.aligned 1;",
            ),
            (
                "xor.b32 %r1, %r2, %r3;",
                Kind::Swizzle,
                "or.b32 %r1, %r2, %r3;",
            ),
            (
                "mbarrier.init.shared::cta.b64 [%r398], %r411;",
                Kind::ArriveCount,
                "{ .reg .b32 changed; add.u32 changed, %r411, 1; mbarrier.init.shared::cta.b64 [%r398], changed; }",
            ),
            (
                "or.b64 %rd58, %rd66, 4611686293305294848;",
                Kind::DescriptorSwizzle,
                "or.b64 %rd58, %rd66, 274877906944;",
            ),
            (
                "{ .reg .pred add; setp.ne.b32 add, %r5, 0; wgmma.mma_async.x {%f1}, %rd1, %rd2, add, 1, 1, 0, 0; }",
                Kind::Accumulate,
                "{ .reg .pred add; setp.ne.b32 add, 0, 0; wgmma.mma_async.x {%f1}, %rd1, %rd2, add, 1, 1, 0, 0; }",
            ),
            ("tcgen05.wait::ld.sync.aligned;", Kind::DropTensorWait, ""),
            (
                "tcgen05.mma.x [%r1], %rd1, %rd2, %r2, p;",
                Kind::Accumulate,
                "{ .reg .pred changed; setp.ne.u32 changed, 0, 0; tcgen05.mma.x [%r1], %rd1, %rd2, %r2, changed; }",
            ),
            (
                "tcgen05.mma.x [%r1], %rd1, %rd2, %r2, p;",
                Kind::DepthAdvance,
                "{ .reg .b64 changed; add.u64 changed, %rd2, 2; tcgen05.mma.x [%r1], %rd1, changed, %r2, p; }",
            ),
            (
                "tcgen05.mma.x [%r1], %rd1, %rd2, %r2, p;",
                Kind::DescriptorLead,
                "{ .reg .b64 changed; xor.b64 changed, %rd2, 2097152; tcgen05.mma.x [%r1], %rd1, changed, %r2, p; }",
            ),
            (
                "tcgen05.mma.x [%r1], [%r3], %rd2, %r2, p;",
                Kind::InstructionField,
                "{ .reg .b32 changed; xor.b32 changed, %r2, 65536; tcgen05.mma.x [%r1], [%r3], %rd2, changed, p; }",
            ),
            (
                "tcgen05.mma.x [%r1], %rd1, %rd2, %r2, p;",
                Kind::TensorColumn,
                "{ .reg .b32 changed; add.u32 changed, %r1, 16; tcgen05.mma.x [changed], %rd1, %rd2, %r2, p; }",
            ),
            (
                "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];",
                Kind::TensorColumn,
                "{ .reg .b32 changed; add.u32 changed, %r3, 16; \
                 tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [changed]; }",
            ),
            (
                "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %rd1;",
                Kind::ScaleLayout,
                "{ .reg .b64 changed; xor.b64 changed, %rd1, 137438953472; \
                 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], changed; }",
            ),
            (
                "tcgen05.mma.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], p;",
                Kind::ScaleLayout,
                "{ .reg .b32 changed; add.u32 changed, %r4, 4; \
                 tcgen05.mma.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [changed], p; }",
            ),
            ("tcgen05.fence::after_thread_sync;", Kind::DropTensorFence, ""),
            (
                "@%p1 setp.ge.s32 %p2, %r1, %r2;",
                Kind::Bound,
                "@%p1 setp.gt.s32 %p2, %r1, %r2;",
            ),
            (
                "st.global.v4.b32 [%rd1+16], {%r1,%r2,%r3,%r4};",
                Kind::Offset,
                "st.global.v4.b32 [%rd1], {%r1,%r2,%r3,%r4};",
            ),
            ("sub.f32 %f1, %f2, %f3;", Kind::Sign, "add.f32 %f1, %f2, %f3;"),
            ("neg.f32 %f1, %f2;", Kind::Sign, "mov.b32 %f1, %f2;"),
            ("max.f32 %f1, %f2, %f3;", Kind::Extreme, "min.f32 %f1, %f2, %f3;"),
            (
                "{ ex2.approx.ftz.f32 %f1, %f2; }",
                Kind::Function,
                "{ mov.b32 %f1, %f2; }",
            ),
            (
                "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;",
                Kind::ShuffleStep,
                "shfl.sync.bfly.b32 %r1|%p1, %r2, 8, 31, -1;",
            ),
            (
                "mul.f32 %f1, %f2, 0f3F000000;",
                Kind::Constant,
                "mul.f32 %f1, %f2, 0f3F800000;",
            ),
            (
                "mma.sync.x {%f1,%f2}, {%r1}, {%r2}, {%f3,%f4};",
                Kind::Accumulate,
                "mma.sync.x {%f1,%f2}, {%r1}, {%r2}, {0f00000000, 0f00000000};",
            ),
        ] {
            let found = changed(line, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4}, [%r1];");
            assert!(
                found.contains(&(kind, wanted.to_owned())),
                "{line}: {found:?}"
            );
        }
        let first = "mov.f32 %f9, 0f00000000;\nmma.sync.x {%f1,%f2}, {%r1}, {%r2}, {%f9,%f9};\n";
        assert_eq!(mutants(first, &BTreeSet::from([2]), &[Slip::Order], 1), []);
        let wait = "{ .reg .pred done; again: mbarrier.try_wait.parity.b64 done, [%r1], %r2; \
            @done bra end; bra again; end: }";
        let found = changed(wait, "");
        assert_eq!(
            found[0].1,
            "{ .reg .pred done; again: setp.eq.u32 done, 0, 0; @done bra end; bra again; end: }"
        );
        assert!(found[1].1.contains(
            "again: { .reg .b32 changed; xor.b32 changed, %r2, 1; \
             mbarrier.try_wait.parity.b64 done, [%r1], changed; } @done"
        ));
        // Where b lies along k no leading offset is used, and an address that is a sum has no register.
        for (instruction, leads) in [(135_267_472, false), (135_333_008, true)] {
            let text =
                format!("mov.b32 %r2, {instruction};\ntcgen05.mma.x [%r1], %rd1, %rd2, %r2, p;\n");
            let found = mutants(&text, &BTreeSet::from([2]), &[Slip::Order], 1);
            let lead = |mutant: &Mutant| mutant.kind == Kind::DescriptorLead;
            assert_eq!(found.iter().any(lead), leads, "{instruction}");
        }
        assert_eq!(changed("tcgen05.st.x [%r1+32], {%r2};", ""), []);
        assert_eq!(changed("add.s32 %r1, %r2, 2;", ""), []);
        assert_eq!(
            changed("add.s32 %r1, %r2, 2;", "wgmma.mma_async.sync.aligned x;"),
            [(Kind::DepthAdvance, "add.s32 %r1, %r2, 0;".to_owned())]
        );
    }

    #[test]
    fn samples_are_spread_over_what_ran() {
        let text = "bar.sync 0;\n".repeat(9);
        let lines = |per_kind| -> Vec<u32> {
            mutants(&text, &(2..=8).collect(), &[Slip::Order], per_kind)
                .iter()
                .map(|mutant| mutant.change.line)
                .collect()
        };
        assert_eq!(lines(1), [2]);
        assert_eq!(lines(3), [2, 5, 8]);
        assert_eq!(lines(99).len(), 7);
        let mutant = &mutants(&text, &BTreeSet::from([3]), &[Slip::Order], 1)[0];
        assert_eq!(apply(&text, &mutant.change).lines().nth(2), Some(""));
    }
}
