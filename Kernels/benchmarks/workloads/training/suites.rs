//! Suites of shapes for the training primitives.

use contender::Workload;

use super::op::TrainingOp;
use super::shape::{RopeShape, TrainingShape};
use crate::rows::RowShape;
use crate::suite::{self, axes, suites};

suites! {
    pub enum TrainingSuite {
        Llama("llama", "widths and heads of Llama 3 8B and 70B"),
        DeepSeek("deepseek", "widths and heads of DeepSeek-V3"),
        TrainScale("trainscale", "16384x4096, and B=32 S=4096 D=8192"),
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
    pub fn workloads(self, op: TrainingOp) -> Vec<(TrainingShape, Workload)> {
        let shapes = match self {
            TrainingSuite::Llama => LLAMA,
            TrainingSuite::DeepSeek => DEEPSEEK,
            TrainingSuite::TrainScale => TRAINSCALE,
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
            TrainingOp::Quantize(_) | TrainingOp::Dequantize(_) => of_rows(shapes.quantize),
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
