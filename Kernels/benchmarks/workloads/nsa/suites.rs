//! Suites of shapes for native sparse attention.

use contender::{Workload, SHAPES_SEED};

use super::shape::NsaShape;
use crate::suite::{self, axes, suites};
use crate::unseen::{distinct, Draws};

suites! {
    pub enum NsaSuite {
        Short("short", "256 to 2048 tokens, blocks of 32 and 64, 1 and 4 groups"),
        Long("long", "8 Ki to 64 Ki tokens, 16 blocks of 64, 64 heads in 4 groups"),
        Unseen("unseen", "8 shapes for all ops drawn by --shapes-seed, around those of the paper"),
        Smoke("smoke", "small shapes and edge cases; fits a CPU"),
    }
}

/// Batch, sequence, heads, groups, dim, block, selected.
type Sizes = [usize; 7];

const SHORT: [Sizes; 8] = [
    [2, 256, 16, 1, 64, 32, 8],
    [2, 512, 16, 1, 64, 32, 8],
    [2, 1024, 16, 1, 64, 64, 4],
    [2, 2048, 16, 1, 64, 64, 4],
    [2, 512, 64, 4, 64, 32, 16],
    [2, 1024, 64, 4, 64, 32, 16],
    [2, 1024, 64, 4, 64, 64, 8],
    [2, 2048, 64, 4, 64, 64, 8],
];
const LONG: [Sizes; 4] = [
    [1, 8192, 64, 4, 128, 64, 16],
    [1, 16384, 64, 4, 128, 64, 16],
    [1, 32768, 64, 4, 128, 64, 16],
    [1, 65536, 64, 4, 128, 64, 16],
];
/// Takes seconds in all: a partial last block, and a shape that the exported baseline supports.
const SMOKE: [&[usize]; 2] = [&[1, 77, 4, 2, 64, 32, 2, 20], &[2, 128, 16, 1, 64, 32, 8]];

impl NsaSuite {
    /// The suite as published.
    pub fn workloads(self) -> Vec<(NsaShape, Workload)> {
        self.drawn(SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, seed: u64) -> Vec<(NsaShape, Workload)> {
        let all = |sizes: &'static [Sizes]| sizes.iter().map(|sizes| &sizes[..]).collect();
        let (sizes, provenance): (Vec<&[usize]>, _) = match self {
            NsaSuite::Short => (
                all(&SHORT),
                "sequences, blocks and groups of the nsa_only config of a kernel runner",
            ),
            NsaSuite::Long => (
                all(&LONG),
                "the NSA paper's 64 heads in 4 groups, 16 blocks of 64, at 8 Ki to 64 Ki tokens",
            ),
            NsaSuite::Unseen => return distinct(seed, UNSEEN_SHAPES, unseen, |(_, w)| w),
            NsaSuite::Smoke => (
                SMOKE.to_vec(),
                "small shapes and edge cases of this project",
            ),
        };
        let shape = |sizes| NsaShape::from_sizes(sizes).expect("the tables hold valid shapes");
        sizes
            .iter()
            .map(|sizes| workload(&self.to_string(), shape(sizes), provenance))
            .collect()
    }

    /// A custom shape.
    pub fn custom(shape: NsaShape) -> (NsaShape, Workload) {
        workload("custom", shape, "given on the command line")
    }
}

/// Sequences of any length; groups of 16 heads, which the exported baseline has, and others.
fn unseen(draws: Draws) -> (NsaShape, Workload) {
    let groups = draws.one_of(0, &[1, 2, 4]);
    let sequence = draws.size(1, 256, 32_768, draws.one_of(2, &[1, 64, 64]));
    let shape = NsaShape {
        batch: draws
            .size(3, 1, 4, 1)
            .min((UNSEEN_TOKENS / sequence).max(1)),
        sequence,
        heads: groups * draws.one_of(4, &[8, 16, 16, 16]),
        groups,
        dim: draws.one_of(5, &[64, 128]),
        block: draws.one_of(6, &[32, 64]),
        selected: draws.one_of(7, &[4, 8, 12, 16]),
        window: draws.size(8, 64, 1024, 32),
    };
    let provenance = "drawn around the NSA paper's heads, blocks and window, and fla's tests";
    workload("unseen", shape, provenance)
}

/// Shapes, each of which every operation has.
const UNSEEN_SHAPES: u64 = 8;

/// Tokens of a drawn batch.
const UNSEEN_TOKENS: usize = 1 << 15;

fn workload(suite: &str, shape: NsaShape, provenance: &str) -> (NsaShape, Workload) {
    let axes = axes([
        ("batch", shape.batch),
        ("sequence", shape.sequence),
        ("heads", shape.heads),
        ("groups", shape.groups),
        ("dim", shape.dim),
        ("block", shape.block),
        ("selected", shape.selected),
    ]);
    let workload = suite::workload(suite, shape.to_string(), provenance, axes);
    (shape, workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn unseen_shapes_are_drawn_and_legal() {
        let drawn = |seed| NsaSuite::Unseen.drawn(seed);
        crate::unseen::assert_drawn(|seed| drawn(seed).into_iter().map(|w| w.0).collect(), 8);
        for (shape, _) in (0..40).flat_map(drawn) {
            assert!(shape.heads.is_multiple_of(shape.groups));
            assert!(shape.tokens() <= UNSEEN_TOKENS);
        }
    }

    #[test]
    fn names_are_unique_in_each_suite() {
        for suite in NsaSuite::all() {
            let workloads = suite.workloads();
            assert_named_once(suite, workloads.iter().map(|(_, workload)| workload));
        }
    }
}
