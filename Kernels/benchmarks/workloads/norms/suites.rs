//! Suites of shapes for the row operations.

use std::collections::HashSet;

use contender::{Workload, SHAPES_SEED};
use numeric::stream_key;

use super::op::NormOp;
use crate::rows::RowShape;
use crate::suite::{axes, suites, workload};
use crate::unseen::{distinct, Draws};

suites! {
    pub enum NormSuite {
        Quack("quack", "batch x sequence of Quack's suite, hidden 4096"),
        Dsv3("dsv3", "prefill rows at hidden sizes around DeepSeek-V3's"),
        Decode("decode", "1 to 2048 rows at the hidden sizes of models"),
        Vocabulary("vocabulary", "cross-entropy of 4096 rows at the vocabularies of models"),
        Unseen("unseen", "8 shapes per op drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "small shapes and edge cases; fits a CPU"),
    }
}

const QUACK_BATCHES: [usize; 5] = [1, 4, 8, 16, 32];
const QUACK_SEQUENCES: [usize; 5] = [8192, 16384, 32768, 65536, 131072];
const QUACK_HIDDEN: usize = 4096;
const DSV3_ROWS: [usize; 3] = [4096, 16384, 65536];
const DSV3_HIDDEN: [usize; 3] = [6144, 7168, 8192];
const DSV3_VOCABULARY: [usize; 4] = [3072, 6144, 8192, 12288];
const DECODE_ROWS: [usize; 4] = [1, 16, 128, 2048];
const DECODE_HIDDEN: [usize; 3] = [4096, 7168, 8192];

const VOCABULARY_ROWS: [usize; 1] = [4096];
const VOCABULARY: [usize; 5] = [32_000, 128_256, 151_936, 201_088, 262_144];

/// Takes seconds in all, for a quick first look: rows that are not 16-byte aligned, and rows that are.
const SMOKE: [(usize, usize); 2] = [(3, 1001), (512, 768)];

impl NormSuite {
    /// The suite's shapes for an operation, as published. For cross-entropy, columns are
    /// vocabularies.
    pub fn workloads(self, op: NormOp) -> Vec<(RowShape, Workload)> {
        self.drawn(op, SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, op: NormOp, seed: u64) -> Vec<(RowShape, Workload)> {
        match self {
            NormSuite::Quack => quack(),
            NormSuite::Dsv3 if op.is_cross_entropy() => grid(
                self,
                &DSV3_ROWS,
                &DSV3_VOCABULARY,
                "DeepSeek-V3-like suite of KernelAgent-Oink, cross-entropy columns",
            ),
            NormSuite::Dsv3 => grid(
                self,
                &DSV3_ROWS,
                &DSV3_HIDDEN,
                "DeepSeek-V3-like suite of KernelAgent-Oink; 7168 is the model's hidden size",
            ),
            NormSuite::Decode => grid(
                self,
                &DECODE_ROWS,
                &DECODE_HIDDEN,
                "tokens of one decode step at hidden sizes of Llama 3 8B, DeepSeek-V3, Llama 3 70B",
            ),
            NormSuite::Vocabulary if op.is_cross_entropy() => grid(
                self,
                &VOCABULARY_ROWS,
                &VOCABULARY,
                "vocabularies of Mixtral, Llama 3, Qwen3 and gpt-oss, and Gemma 3's without its padding",
            ),
            NormSuite::Vocabulary => Vec::new(),
            NormSuite::Unseen => {
                let seed = stream_key(seed, op as u32);
                distinct(seed, UNSEEN_SHAPES, |draws| unseen(op, draws), |(_, w)| w)
            }
            NormSuite::Smoke => SMOKE
                .iter()
                .map(|&(rows, columns)| {
                    let shape = RowShape { rows, columns };
                    plain(
                        self.to_string(),
                        shape,
                        "small shapes and edge cases of this project",
                    )
                })
                .collect(),
        }
    }

    /// A custom shape.
    pub fn custom(shape: RowShape) -> (RowShape, Workload) {
        plain("custom".to_owned(), shape, "given on the command line")
    }
}

/// Shapes of each operation.
const UNSEEN_SHAPES: u64 = 8;

/// Elements of a drawn matrix: 1 GiB of bf16.
const UNSEEN_ELEMENTS: usize = 1 << 29;

/// Rows of any number; widths of whole vectors, once in eight of any even number.
fn unseen(op: NormOp, draws: Draws) -> (RowShape, Workload) {
    let step = draws.one_of(0, &[2, 8, 8, 64, 64, 64, 128, 128]);
    let (columns, provenance) = match op.is_cross_entropy() {
        true => (
            draws.size(1, 32_000, 262_144, step),
            "drawn: vocabularies from Llama 2's 32000 to Gemma 3's 262144",
        ),
        false => (
            draws.size(1, 896, 16_384, step),
            "drawn: hidden sizes from Qwen2.5 0.5B's 896 to Llama 3 405B's 16384",
        ),
    };
    let rows = draws.size(2, 1, 131_072, 1).min(UNSEEN_ELEMENTS / columns);
    let shape = RowShape { rows, columns };
    plain(NormSuite::Unseen.to_string(), shape, provenance)
}

fn plain(suite: String, shape: RowShape, provenance: &str) -> (RowShape, Workload) {
    let axes = axes([("rows", shape.rows), ("columns", shape.columns)]);
    let workload = workload(suite, shape.to_string(), provenance, axes);
    (shape, workload)
}

fn grid(
    suite: NormSuite,
    rows: &[usize],
    columns: &[usize],
    provenance: &str,
) -> Vec<(RowShape, Workload)> {
    rows.iter()
        .flat_map(|&rows| {
            columns
                .iter()
                .map(move |&columns| RowShape { rows, columns })
        })
        .map(|shape| plain(suite.to_string(), shape, provenance))
        .collect()
}

/// The 25 pairs of batch and sequence have ten products, and rows do not know of batches.
fn quack() -> Vec<(RowShape, Workload)> {
    let mut seen = HashSet::new();
    let workload = |batch: usize, sequence: usize| {
        let (rows, columns) = (batch * sequence, QUACK_HIDDEN);
        let axes = axes([
            ("batch", batch),
            ("sequence", sequence),
            ("rows", rows),
            ("columns", columns),
        ]);
        let name = format!("b{batch}s{sequence}");
        let provenance =
            "Quack suite of KernelAgent-Oink: batch x sequence, hidden 4096; equal products once";
        let workload = workload(NormSuite::Quack, name, provenance, axes);
        (RowShape { rows, columns }, workload)
    };
    QUACK_BATCHES
        .iter()
        .flat_map(|&batch| {
            QUACK_SEQUENCES
                .iter()
                .map(move |&sequence| workload(batch, sequence))
        })
        .filter(|(shape, _)| seen.insert(shape.rows))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn sizes_and_ends_of_the_suites() {
        let shapes = |suite: NormSuite, op| -> Vec<RowShape> {
            suite
                .workloads(op)
                .into_iter()
                .map(|(shape, _)| shape)
                .collect()
        };
        let quack = shapes(NormSuite::Quack, NormOp::SoftmaxForward);
        assert_eq!(quack.len(), 10);
        assert_eq!(quack[0].to_string(), "8192x4096");
        assert_eq!(quack[9].to_string(), "4194304x4096");
        assert_eq!(shapes(NormSuite::Dsv3, NormOp::RmsNormForward).len(), 9);
        let entropy = shapes(NormSuite::Dsv3, NormOp::CrossEntropyForward);
        assert_eq!((entropy.len(), entropy[11].columns), (12, 12288));
        assert_eq!(shapes(NormSuite::Decode, NormOp::RmsNormForward).len(), 12);
        let logits = shapes(NormSuite::Vocabulary, NormOp::CrossEntropyForward);
        assert_eq!((logits.len(), logits[4].columns), (5, 262_144));
        assert!(shapes(NormSuite::Vocabulary, NormOp::RmsNormForward).is_empty());
    }

    #[test]
    fn unseen_shapes_are_drawn_per_op_and_fit() {
        let drawn = |seed| {
            let of_op = move |op| NormSuite::Unseen.drawn(op, seed);
            NormOp::all().flat_map(of_op).map(|(shape, _)| shape)
        };
        crate::unseen::assert_drawn(|seed| drawn(seed).collect(), 24);
        for shape in (0..40).flat_map(drawn) {
            assert!(shape.rows > 0 && shape.columns % 2 == 0);
            assert!(shape.rows * shape.columns <= UNSEEN_ELEMENTS);
        }
    }

    #[test]
    fn names_are_unique_and_axes_say_the_shape() {
        for suite in NormSuite::all() {
            // Every suite has shapes for it.
            let workloads = suite.workloads(NormOp::CrossEntropyForward);
            assert_named_once(suite, workloads.iter().map(|(_, workload)| workload));
            for (shape, workload) in &workloads {
                assert_eq!(workload.axes["rows"], shape.rows);
                assert_eq!(workload.axes["columns"], shape.columns);
            }
        }
    }
}
