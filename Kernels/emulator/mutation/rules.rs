//! The instructions that have a fault, and the fault.

use crate::statement::Statement;
use crate::Kind;

/// The new line, if the statement can have the fault.
type Rewrite = fn(&Statement, Around) -> Option<String>;

/// Where a statement stands: what is near says what it is for.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    pub lines: &'a [&'a str],
    pub at: usize,
}

impl Around<'_> {
    fn is_before(&self, distance: usize, opcodes: &[&str]) -> bool {
        let mut next = self.lines[self.at + 1..].iter().take(distance);
        next.any(|line| opcodes.iter().any(|opcode| line.contains(opcode)))
    }

    /// The number that the last line which sets a register gives it, if that is one.
    fn constant(&self, register: &str) -> Option<u32> {
        let target = format!("{register},");
        let sets = |line: &&&str| line.split_whitespace().nth(1) == Some(&target);
        let line = self.lines[..self.at].iter().rev().find(sets)?;
        let mut words = line.split_whitespace();
        let moves = words.next()?.starts_with("mov.");
        let source = words.nth(1)?.trim_end_matches(';');
        moves.then(|| source.parse().ok())?
    }

    /// Whether the last line that sets a register makes it zero, itself or by way of another.
    fn is_zero(&self, register: &str) -> bool {
        let target = format!("{register},");
        for (at, line) in self.lines[..self.at].iter().enumerate().rev() {
            let mut words = line.split_whitespace();
            let opcode = words.next().unwrap_or_default();
            if opcode.starts_with("mov.") && words.next() == Some(&target) {
                let source = words.next().unwrap_or_default().trim_end_matches(';');
                let earlier = Self {
                    lines: self.lines,
                    at,
                };
                return matches!(source, "0" | "0f00000000")
                    || source.starts_with('%') && earlier.is_zero(source);
            }
            let sums = Statement::find(line, "mma.sync").map(|product| product.operands()[0]);
            if sums.is_some_and(|sums| sums.trim_start_matches('{').starts_with(&target)) {
                return false;
            }
        }
        // Nothing is known of it.
        true
    }
}

pub struct Rule {
    pub kind: Kind,
    /// What the statement begins with.
    pub opcode: &'static str,
    pub change: Rewrite,
}

fn drop(statement: &Statement, _: Around) -> Option<String> {
    Some(statement.dropped())
}

fn last(statement: &Statement) -> usize {
    statement.operands().len() - 1
}

fn more_groups(statement: &Statement, _: Around) -> Option<String> {
    let groups: u32 = statement.operands()[0].parse().ok()?;
    statement.with_operand(0, &(groups + 1).to_string())
}

fn always_over(statement: &Statement, _: Around) -> Option<String> {
    let done = statement.operands()[0];
    Some(statement.replaced(&format!("setp.eq.u32 {done}, 0, 0")))
}

fn other_phase(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(2, "xor.b32", 1)
}

fn relaxed(statement: &Statement, _: Around) -> Option<String> {
    statement
        .body
        .contains(".release")
        .then(|| statement.replaced(&statement.body.replace(".release", ".relaxed")))
}

// Beside ldmatrix alone: elsewhere it may be arithmetic.
fn or_for_xor(statement: &Statement, around: Around) -> Option<String> {
    let near = around.is_before(12, &["ldmatrix", "cp.async.cg", "stmatrix"]);
    near.then(|| statement.replaced(&statement.body.replacen("xor", "or", 1)))
}

fn descriptor(statement: &Statement) -> Option<u64> {
    let bits: u64 = statement.operands().get(2)?.parse().ok()?;
    (bits >> 61 != 0).then_some(bits)
}

fn other_layout(statement: &Statement, _: Around) -> Option<String> {
    let bits = descriptor(statement)? & (u64::MAX >> 3);
    statement.with_operand(2, &(bits & !(0x3fff << 16)).to_string())
}

fn other_stride(statement: &Statement, _: Around) -> Option<String> {
    const STRIDE: u64 = 0x3fff << 32;
    let bits = descriptor(statement)?;
    let half = bits & !STRIDE | (bits & STRIDE) >> 1 & STRIDE;
    (half != bits).then(|| statement.with_operand(2, &half.to_string()))?
}

fn no_advance(statement: &Statement, around: Around) -> Option<String> {
    let step: u32 = statement.operands().get(2)?.parse().ok()?;
    let near = around.is_before(14, &["wgmma.mma_async"]);
    (near && matches!(step, 2 | 4 | 6)).then(|| statement.with_operand(2, "0"))?
}

// Our products take their predicate from a comparison in the same line.
fn never_adds(statement: &Statement, around: Around) -> Option<String> {
    let (before, _) = statement.around();
    let start = before.rfind("setp.ne.b32")?;
    let end = start + before[start..].find(';')?;
    let mut words = before[start..end].split_whitespace().skip(1);
    let (predicate, adds) = (
        words.next()?.trim_end_matches(','),
        words.next()?.trim_end_matches(','),
    );
    if around.is_zero(adds) {
        return None;
    }
    let whole = statement.replaced(statement.body);
    Some(format!(
        "{}setp.ne.b32 {predicate}, 0, 0{}",
        &whole[..start],
        &whole[end..]
    ))
}

fn adds_to_zero(statement: &Statement, around: Around) -> Option<String> {
    let operands = statement.operands();
    let sums = operands.get(3)?;
    // Only sums of singles can be written as numbers; a first product adds to zero anyway.
    let first = sums.trim_matches(['{', '}', ' ']).split(',').next()?;
    if !first.starts_with("%f") || around.is_zero(first) {
        return None;
    }
    let zeros = vec!["0f00000000"; sums.split(',').count()].join(", ");
    statement.with_operand(3, &format!("{{{zeros}}}"))
}

/// Of a tensor core's instruction descriptor: b's columns are contiguous, not its depth.
const WIDTH_MAJOR_B: u32 = 1 << 16;

// Operands of tensor cores: the sums' place, two descriptors or an address, what the instruction does, a predicate.
fn unswizzled(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(2, "and.b64", u64::MAX >> 3)
}

fn other_stride_of_b(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(2, "xor.b64", 0x20 << 32)
}

// Where an instruction is known to take b along k, swizzled rows have no leading offset.
fn other_lead(statement: &Statement, around: Around) -> Option<String> {
    let along_depth = |instruction: u32| instruction & WIDTH_MAJOR_B == 0;
    let instruction = around.constant(statement.operands().get(3)?);
    let unused = instruction.is_some_and(along_depth);
    (!unused).then(|| statement.computed(2, "xor.b64", 0x20 << 16))?
}

fn fewer_columns(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(3, "sub.u32", (16 >> 3) << 17)
}

fn other_major_of_b(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(3, "xor.b32", WIDTH_MAJOR_B.into())
}

fn columns_later(statement: &Statement, operand: usize) -> Option<String> {
    statement.computed(operand, "add.u32", 16)
}

fn other_sums(statement: &Statement, _: Around) -> Option<String> {
    columns_later(statement, 0)
}

fn other_source(statement: &Statement, _: Around) -> Option<String> {
    columns_later(statement, 1)
}

// Operands of copies: where to, and a descriptor. A tile of scales has four columns.
fn other_stride_of_copy(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(1, "xor.b64", 0x20 << 32)
}

fn other_place_of_copy(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(0, "add.u32", 4)
}

fn scales_later(statement: &Statement, operand: usize) -> Option<String> {
    let scaled = statement.opcode().contains(".block_scale");
    scaled.then(|| statement.computed(operand, "add.u32", 4))?
}

fn other_scales_of_a(statement: &Statement, _: Around) -> Option<String> {
    scales_later(statement, 4)
}

fn other_scales_of_b(statement: &Statement, _: Around) -> Option<String> {
    scales_later(statement, 5)
}

fn further_along(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(2, "add.u64", 2)
}

fn sum_alone(statement: &Statement, _: Around) -> Option<String> {
    statement.with_register(last(statement), "pred", "setp.ne.u32 changed, 0, 0")
}

fn one_more(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(last(statement), "add.u32", 1)
}

fn more_bytes(statement: &Statement, _: Around) -> Option<String> {
    statement.computed(last(statement), "add.u32", 16)
}

pub const fn rule(kind: Kind, opcode: &'static str, change: Rewrite) -> Rule {
    Rule {
        kind,
        opcode,
        change,
    }
}

pub const RULES: &[Rule] = &[
    rule(Kind::DropCopyWait, "cp.async.wait_", drop),
    rule(Kind::DropBulkWait, "cp.async.bulk.wait_group", drop),
    rule(Kind::WeakenProductWait, "wgmma.wait_group", more_groups),
    rule(Kind::DropPhaseWait, "mbarrier.try_wait", always_over),
    rule(Kind::FlipPhase, "mbarrier.try_wait.parity", other_phase),
    rule(Kind::DropBarrier, "bar.sync", drop),
    rule(Kind::DropBarrier, "barrier.sync", drop),
    rule(Kind::DropWarpBarrier, "bar.warp.sync", drop),
    rule(Kind::DropClusterWait, "barrier.cluster.wait", drop),
    rule(Kind::RelaxClusterArrive, "barrier.cluster.arrive", relaxed),
    rule(Kind::DropArrive, "mbarrier.arrive.shared", drop),
    rule(Kind::DropArrive, "bar.arrive", drop),
    rule(Kind::DropProxyFence, "fence.proxy.async", drop),
    rule(Kind::DropInitFence, "fence.mbarrier_init", drop),
    rule(Kind::DropProductFence, "wgmma.fence", drop),
    rule(Kind::DropTensorFence, "tcgen05.fence::before", drop),
    rule(Kind::DropTensorFence, "tcgen05.fence::after", drop),
    rule(Kind::DropCommit, "cp.async.commit_group", drop),
    rule(Kind::DropCommit, "wgmma.commit_group", drop),
    rule(Kind::DropCommit, "tcgen05.commit", drop),
    rule(Kind::DropTensorWait, "tcgen05.wait", drop),
    rule(Kind::DescriptorSwizzle, "tcgen05.mma", unswizzled),
    rule(Kind::DescriptorStride, "tcgen05.mma", other_stride_of_b),
    rule(Kind::DescriptorLead, "tcgen05.mma", other_lead),
    rule(Kind::InstructionField, "tcgen05.mma", fewer_columns),
    rule(Kind::InstructionField, "tcgen05.mma", other_major_of_b),
    rule(Kind::TensorColumn, "tcgen05.mma", other_sums),
    rule(Kind::TensorColumn, "tcgen05.ld", other_source),
    rule(Kind::TensorColumn, "tcgen05.st", other_sums),
    rule(Kind::ScaleLayout, "tcgen05.cp", other_stride_of_copy),
    rule(Kind::ScaleLayout, "tcgen05.cp", other_place_of_copy),
    rule(Kind::ScaleLayout, "tcgen05.mma", other_scales_of_a),
    rule(Kind::ScaleLayout, "tcgen05.mma", other_scales_of_b),
    rule(Kind::DepthAdvance, "tcgen05.mma", further_along),
    rule(Kind::Accumulate, "tcgen05.mma", sum_alone),
    rule(Kind::Swizzle, "xor.b32", or_for_xor),
    rule(Kind::DescriptorSwizzle, "or.b64", other_layout),
    rule(Kind::DescriptorStride, "or.b64", other_stride),
    rule(Kind::DepthAdvance, "add.s32", no_advance),
    rule(Kind::Accumulate, "wgmma.mma_async", never_adds),
    rule(Kind::Accumulate, "mma.sync", adds_to_zero),
    rule(Kind::ArriveCount, "mbarrier.init", one_more),
    rule(Kind::ExpectedBytes, "mbarrier.arrive.expect_tx", more_bytes),
];
