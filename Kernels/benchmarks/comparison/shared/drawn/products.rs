use numeric::DType;
use workloads::{DenseWorkload, GemmProblem, GemmShape, GemmSuite, GroupedGemmSuite, RowLayout};

use crate::Draw;

/// Up to `most` rows and columns: any number of rows; columns that are whole 16-byte pieces of the result; k that is
/// whole blocks of scales.
pub fn dense(draw: &Draw, most: usize) -> DenseWorkload {
    let few = draw.case.is_multiple_of(3);
    let m = 1 + draw.below(0, if few { 64.min(most) } else { most });
    let n = 8 * (1 + draw.below(1, most / 8));
    let k = 128 * (1 + draw.below(2, most.div_ceil(256)));
    GemmSuite::custom(m, n, k)
}

/// Empty groups, single rows, whole tiles, and anything up to `most` rows, contiguous or masked.
pub fn grouped(
    draw: &Draw,
    groups: usize,
    most: usize,
    sides: usize,
    dtypes: &[DType],
) -> GemmProblem {
    let groups = 1 + draw.below(0, groups);
    let mut tokens: Vec<usize> = (0..groups as u32)
        .map(|group| match draw.below(10 + 2 * group, 6) {
            0 => 0,
            1 => 1,
            2 => 128.min(most),
            3 => 1 + draw.below(11 + 2 * group, 40.min(most)),
            _ => 1 + draw.below(11 + 2 * group, most),
        })
        .collect();
    if tokens.iter().all(|&rows| rows == 0) {
        tokens[0] = 1;
    }
    let shape = GemmShape {
        n: 16 * (1 + draw.below(1, sides / 16)),
        k: 128 * (1 + draw.below(2, sides.div_ceil(128))),
    };
    let layout = if draw.case % 4 == 3 {
        // Space that is not a multiple of a tile.
        let longest = tokens.iter().max().copied().unwrap_or(0);
        RowLayout::masked(tokens, longest.next_multiple_of(8))
    } else {
        RowLayout::contiguous(tokens)
    };
    let dtype = draw.one_of(3, dtypes);
    let workload = GroupedGemmSuite::custom(1, 1, shape.n, shape.k).2;
    GemmProblem::new(shape, layout, dtype, workload).expect("a problem")
}
