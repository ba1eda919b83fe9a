use numeric::DType;
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

use crate::Draw;

/// One shape in this many may be as large as the limits allow; the others stay well below.
const HUGE_EVERY: u64 = 16;

pub struct NormLimits {
    pub elements: usize,
    pub columns: usize,
    pub rows: usize,
}

/// Operations take turns.
pub fn norm(draw: &Draw, limits: &NormLimits) -> NormProblem {
    let ops: Vec<NormOp> = NormOp::all().collect();
    let types = [DType::Bf16, DType::F16, DType::F32];
    let huge = (draw.case / ops.len() as u64).is_multiple_of(HUGE_EVERY);
    let elements = limits.elements / if huge { 1 } else { 32 };
    let columns = match draw.below(0, 6) {
        // Tiny, any, a multiple of every vector, one off it, a power of two, the largest.
        0 => 1 + draw.below(1, 40),
        1 => 1 + draw.below(1, limits.columns.min(20_000)),
        2 => 8 * (1 + draw.below(1, limits.columns.min(32_768) / 8)),
        3 => 8 * (1 + draw.below(1, limits.columns.min(32_768) / 8)) - 1,
        4 => 1 << draw.below(1, limits.columns.ilog2() as usize + 1),
        _ => limits.columns - draw.below(1, 3),
    };
    let most = (elements / columns).clamp(1, limits.rows);
    let rows = match draw.below(2, 3) {
        0 => 1 + draw.below(3, most.min(8)),
        1 => 1 + draw.below(3, most.min(3000)),
        _ => 1 + draw.below(3, most),
    };
    let activation = draw.one_of(4, &types);
    let weight = draw.one_of(5, &[DType::F32, activation]);
    let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
    let types = NormTypes { activation, weight };
    NormProblem::new(draw.turn(&ops), shape, types, workload)
}
