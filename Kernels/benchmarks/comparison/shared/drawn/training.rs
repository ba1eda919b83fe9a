use numeric::DType;
use workloads::{RopeShape, RowShape, TrainingOp, TrainingProblem, TrainingShape, TrainingSuite};

use crate::Draw;

/// At most so many elements; operations take turns.
pub fn training(draw: &Draw, elements: usize, dtypes: &[DType]) -> TrainingProblem {
    let op = draw.turn(&TrainingOp::all().collect::<Vec<_>>());
    let shape = match op {
        TrainingOp::Rope(..) => TrainingShape::Rope(rope_shape(draw, elements)),
        TrainingOp::Activation(..) | TrainingOp::Packed(_) => {
            let columns = 1 + draw.below(1, elements.min(40_000));
            TrainingShape::Rows(row_shape(draw, columns, elements))
        }
        // FP8 GEMMs read whole runs of 16.
        TrainingOp::Quantize(_) | TrainingOp::Dequantize(_) | TrainingOp::NormQuantize(_) => {
            let columns = match draw.below(0, 4) {
                0 => 16 * (1 + draw.below(1, 20)),
                1 => 128 * (1 + draw.below(1, elements.min(32_768) / 128)),
                2 => 16 * (1 + draw.below(1, elements.min(32_768) / 16)),
                _ => elements.min(300_000) / 16 * 16,
            };
            TrainingShape::Rows(row_shape(draw, columns, elements))
        }
    };
    let (shape, workload) = TrainingSuite::custom(shape);
    TrainingProblem::new(op, shape, draw.one_of(4, dtypes), workload)
}

fn row_shape(draw: &Draw, columns: usize, elements: usize) -> RowShape {
    let most = (elements / columns).max(1);
    let rows = match draw.below(2, 3) {
        0 => 1 + draw.below(3, most.min(8)),
        1 => 1 + draw.below(3, most.min(3000)),
        _ => 1 + draw.below(3, most),
    };
    RowShape { rows, columns }
}

fn rope_shape(draw: &Draw, elements: usize) -> RopeShape {
    let dim = 16 * (1 + draw.below(0, 16));
    let (query_heads, key_heads) = (1 + draw.below(1, 64), 1 + draw.below(2, 8));
    let tokens = (elements / ((query_heads + key_heads) * dim)).max(1);
    let sequence = 1 + draw.below(3, tokens.min(4096));
    RopeShape {
        batch: 1 + draw.below(5, (tokens / sequence).clamp(1, 64)),
        sequence,
        query_heads,
        key_heads,
        dim,
    }
}
