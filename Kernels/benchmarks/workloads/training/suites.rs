//! Suites of shapes for the training primitives.

use contender::{Workload, SHAPES_SEED};
use numeric::stream_key;

use super::op::TrainingOp;
use super::shape::{RopeShape, TrainingShape};
use crate::rows::RowShape;
use crate::suite::{self, axes, suites};
use crate::unseen::{distinct, Draws};

suites! {
    pub enum TrainingSuite {
        Llama("llama", "widths and heads of Llama 3 8B and 70B"),
        DeepSeek("deepseek", "widths and heads of DeepSeek-V3"),
        TrainScale("trainscale", "16384x4096, and B=32 S=4096 D=8192"),
        Decode("decode", "a decode step of Llama 3 8B, 16 and 64 tokens"),
        Unseen("unseen", "4 shapes per op drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "small shapes and edge cases; fits a CPU"),
    }
}

/// Rows, columns, and their source.
type Rows = (usize, usize, &'static str);
/// Batch, sequence, query heads, key heads, dim, and their source.
type Heads = (usize, usize, usize, usize, usize, &'static str);

struct Shapes {
    /// The widths of feed-forward layers: activations.
    activation: &'static [Rows],
    /// The widths that FP8 GEMMs read: quantisation.
    quantize: &'static [Rows],
    rope: &'static [Heads],
}

const LLAMA: Shapes = Shapes {
    activation: &[
        (4096, 14336, "Llama 3 8B, feed-forward, 4096 tokens"),
        (16384, 14336, "Llama 3 8B, feed-forward, 4 x 4096 tokens"),
        (8192, 28672, "Llama 3 70B, feed-forward, 8192 tokens"),
    ],
    quantize: &[
        (16384, 4096, "Llama 3 8B, hidden, 4 x 4096 tokens"),
        (16384, 8192, "Llama 3 70B, hidden, 2 x 8192 tokens"),
        (16384, 14336, "Llama 3 8B, feed-forward, 4 x 4096 tokens"),
    ],
    rope: &[
        (4, 4096, 32, 8, 128, "Llama 3 8B"),
        (2, 8192, 64, 8, 128, "Llama 3 70B"),
        (16, 4096, 32, 8, 128, "Llama 3 8B, 64 Ki tokens"),
    ],
};

const DEEPSEEK: Shapes = Shapes {
    activation: &[
        (
            65536,
            2048,
            "DeepSeek-V3, an expert's width, 8 experts of 8192 tokens",
        ),
        (
            16384,
            18432,
            "DeepSeek-V3, dense feed-forward, 4 x 4096 tokens",
        ),
    ],
    quantize: &[
        (16384, 7168, "DeepSeek-V3, hidden, 4 x 4096 tokens"),
        (
            65536,
            2048,
            "DeepSeek-V3, an expert's width, 8 experts of 8192 tokens",
        ),
        (32768, 7168, "DeepSeek-V3, hidden, 8 x 4096 tokens"),
    ],
    rope: &[
        (
            4,
            4096,
            128,
            1,
            64,
            "DeepSeek-V3, the 64 rotary elements of 128 heads",
        ),
        (16, 4096, 128, 1, 64, "DeepSeek-V3, the same, 64 Ki tokens"),
    ],
};

const TRAINSCALE: Shapes = Shapes {
    activation: &[
        (16384, 4096, "TrainScale's GELU shape"),
        (131_072, 8192, "TrainScale's B=32 S=4096 D=8192"),
    ],
    quantize: &[
        (16384, 4096, "TrainScale's GELU shape"),
        (131_072, 8192, "TrainScale's B=32 S=4096 D=8192"),
    ],
    rope: &[(
        32,
        4096,
        64,
        8,
        128,
        "TrainScale's B=32 S=4096 D=8192, 64 heads",
    )],
};

/// What the step of a server adds to its products, norms and attention.
const DECODE: Shapes = Shapes {
    activation: &[
        (16, 14336, "Llama 3 8B, feed-forward, 16 tokens"),
        (64, 14336, "Llama 3 8B, feed-forward, 64 tokens"),
    ],
    quantize: &[
        (16, 4096, "Llama 3 8B, hidden, 16 tokens"),
        (64, 4096, "Llama 3 8B, hidden, 64 tokens"),
    ],
    rope: &[
        (16, 1, 32, 8, 128, "Llama 3 8B, 16 tokens"),
        (64, 1, 32, 8, 128, "Llama 3 8B, 64 tokens"),
    ],
};

/// Takes seconds in all: partial vectors, a partial last group, and regular shapes.
const SMOKE: Shapes = Shapes {
    activation: &[
        (3, 1001, "edge case of this project"),
        (512, 768, "small shape of this project"),
    ],
    quantize: &[
        (131, 336, "edge case of this project"),
        (512, 768, "small shape of this project"),
    ],
    rope: &[
        (2, 7, 3, 1, 96, "edge case of this project"),
        (2, 128, 8, 2, 64, "small shape of this project"),
    ],
};

impl TrainingSuite {
    /// The suite as published.
    pub fn workloads(self, op: TrainingOp) -> Vec<(TrainingShape, Workload)> {
        self.drawn(op, SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, op: TrainingOp, seed: u64) -> Vec<(TrainingShape, Workload)> {
        let shapes = match self {
            TrainingSuite::Unseen => {
                let place = TrainingOp::all().position(|other| other == op);
                let seed = stream_key(seed, place.expect("an op of the list") as u32);
                return distinct(seed, UNSEEN_SHAPES, |draws| unseen(op, draws), |(_, w)| w);
            }
            TrainingSuite::Llama => LLAMA,
            TrainingSuite::DeepSeek => DEEPSEEK,
            TrainingSuite::TrainScale => TRAINSCALE,
            TrainingSuite::Decode => DECODE,
            TrainingSuite::Smoke => SMOKE,
        };
        let of_rows = |rows: &[Rows]| {
            rows.iter()
                .map(|&(rows, columns, source)| {
                    let shape = TrainingShape::Rows(RowShape { rows, columns });
                    workload(&self.to_string(), shape, source)
                })
                .collect()
        };
        match op {
            TrainingOp::Activation(..) | TrainingOp::Packed(_) => of_rows(shapes.activation),
            TrainingOp::Quantize(_) | TrainingOp::Dequantize(_) | TrainingOp::NormQuantize(_) => {
                of_rows(shapes.quantize)
            }
            TrainingOp::Rope(..) => shapes
                .rope
                .iter()
                .map(|&(batch, sequence, query_heads, key_heads, dim, source)| {
                    let shape = TrainingShape::Rope(RopeShape {
                        batch,
                        sequence,
                        query_heads,
                        key_heads,
                        dim,
                    });
                    workload(&self.to_string(), shape, source)
                })
                .collect(),
        }
    }

    /// A custom shape.
    pub fn custom(shape: TrainingShape) -> (TrainingShape, Workload) {
        workload("custom", shape, "given on the command line")
    }
}

/// Shapes of each operation.
const UNSEEN_SHAPES: u64 = 4;

/// Elements of a drawn tensor: 1 GiB of bf16.
const UNSEEN_ELEMENTS: usize = 1 << 29;

/// Tokens of any number; widths of whole groups of a quantisation for its operations, otherwise of
/// whole vectors; heads as in models.
fn unseen(op: TrainingOp, draws: Draws) -> (TrainingShape, Workload) {
    let suite = TrainingSuite::Unseen.to_string();
    if op.is_rope() {
        let key_heads = draws.one_of(0, &[1, 2, 4, 8, 8]);
        let query_heads = key_heads * draws.one_of(1, &[1, 4, 5, 7, 8]);
        let dim = draws.one_of(2, &[64, 128, 128]);
        let token = query_heads * dim;
        let sequence = draws.size(3, 128, 32_768, 1);
        let shape = TrainingShape::Rope(RopeShape {
            batch: draws
                .size(4, 1, 32, 1)
                .min(UNSEEN_ELEMENTS / (sequence * token))
                .max(1),
            sequence,
            query_heads,
            key_heads,
            dim,
        });
        return workload(
            &suite,
            shape,
            "drawn within the ranges of Llama, Qwen and GLM heads",
        );
    }
    let step = match op {
        TrainingOp::Quantize(_) | TrainingOp::Dequantize(_) | TrainingOp::NormQuantize(_) => 128,
        _ => draws.one_of(0, &[8, 64, 128]),
    };
    let columns = draws.size(1, 896, 53_248, step);
    let rows = draws.size(2, 64, 131_072, 1).min(UNSEEN_ELEMENTS / columns);
    let shape = TrainingShape::Rows(RowShape { rows, columns });
    let source = "drawn: widths from Qwen2.5 0.5B's 896 to Llama 3 405B's 53248";
    workload(&suite, shape, source)
}

fn workload(suite: &str, shape: TrainingShape, provenance: &str) -> (TrainingShape, Workload) {
    let sizes: Vec<(&str, usize)> = match shape {
        TrainingShape::Rows(RowShape { rows, columns }) => {
            vec![("rows", rows), ("columns", columns)]
        }
        TrainingShape::Rope(rope) => vec![
            ("batch", rope.batch),
            ("sequence", rope.sequence),
            ("query_heads", rope.query_heads),
            ("key_heads", rope.key_heads),
            ("dim", rope.dim),
        ],
    };
    let workload = suite::workload(suite, shape.to_string(), provenance, axes(sizes));
    (shape, workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn unseen_shapes_are_drawn_per_op_and_fit() {
        let drawn = |seed| {
            let of_op = move |op| TrainingSuite::Unseen.drawn(op, seed);
            TrainingOp::all().flat_map(of_op).map(|(shape, _)| shape)
        };
        crate::unseen::assert_drawn(|seed| drawn(seed).collect(), 24);
        for shape in (0..40).flat_map(drawn) {
            let elements = match shape {
                TrainingShape::Rows(shape) => shape.rows * shape.columns,
                TrainingShape::Rope(shape) => shape.tokens() * shape.query_heads * shape.dim,
            };
            assert!(elements > 0 && elements <= UNSEEN_ELEMENTS, "{shape}");
        }
    }

    #[test]
    fn names_are_unique_and_shapes_belong_to_their_op() {
        for suite in TrainingSuite::all() {
            for op in TrainingOp::all() {
                let workloads = suite.workloads(op);
                assert_named_once(suite, workloads.iter().map(|(_, workload)| workload));
                let is_rope = |(shape, _): &(_, _)| matches!(shape, TrainingShape::Rope(_));
                assert!(workloads.iter().all(|w| is_rope(w) == op.is_rope()));
            }
        }
    }

    #[test]
    fn the_shapes_of_trainscale_are_there() {
        let gelu = TrainingOp::all().next().unwrap();
        let names: Vec<String> = TrainingSuite::TrainScale
            .workloads(gelu)
            .into_iter()
            .map(|(_, workload)| workload.name)
            .collect();
        assert_eq!(names, ["16384x4096", "131072x8192"]);
    }
}
