//! flash-linear-attention's native sparse attention, made by Triton, from the PTX that its recipe keeps.

use fla_contender::contenders_of_warps;
use numeric::DType;
use support::Table;
use workloads::{NsaOp, NsaProblem, NsaShape, NsaSuite};

fn problem(op: NsaOp, sizes: &[usize], warps: u32) -> NsaProblem {
    let (shape, mut workload) = NsaSuite::custom(NsaShape::from_sizes(sizes).unwrap());
    workload.name += &format!(", {warps} warps");
    NsaProblem::new(op, shape, DType::Bf16, workload)
}

/// Every number of warps that the library tunes over; sequences that end inside of blocks.
#[test]
fn right_under_every_schedule() {
    let mut table = Table::default();
    let mut right = |op, warps, sizes: &[usize]| {
        let contenders = contenders_of_warps(warps);
        table.assert_right(&contenders, "fla", &problem(op, sizes, warps));
    };
    for warps in [1, 2, 4, 8] {
        right(NsaOp::Selected, warps, &[1, 48, 16, 1, 64, 32, 8]);
    }
    for warps in [1, 2, 4] {
        right(NsaOp::Compressed, warps, &[1, 48, 16, 1, 64, 32, 8]);
    }
    // Several groups of heads, and wider ones.
    right(NsaOp::Selected, 4, &[1, 80, 64, 4, 128, 64, 16]);
}
