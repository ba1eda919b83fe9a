//! DeepGEMM's dense products on Hopper: kernels that take n and k as arguments.

use contender::DeviceKind;
use numeric::DType;
use support::Table;
use workloads::{GemmProblem, GemmShape, GemmSuite, RowLayout};

fn dense(m: usize, n: usize, k: usize, dtype: DType) -> GemmProblem {
    let workload = GemmSuite::custom(m, n, k).2;
    GemmProblem::new(GemmShape { n, k }, RowLayout::dense(m), dtype, workload).unwrap()
}

#[test]
fn right_under_every_schedule() {
    let contenders = gemm_contenders::contenders(DeviceKind::Ptx);
    let mut table = Table::default();
    for dtype in [DType::Bf16, DType::F8E4M3] {
        // Tiles of 64 x 16, 16 x 32 and 64 x 32, which the rows and columns do not fill.
        for (m, n, k) in [(40, 16, 256), (8, 2176, 128), (100, 1152, 256)] {
            table.assert_right(&contenders, "deep_gemm", &dense(m, n, k, dtype));
        }
    }
    // The blocks of a cluster share b along rows, and a along columns.
    for (m, n, dtype) in [(2048, 2432, DType::F8E4M3), (1500, 5376, DType::Bf16)] {
        table.assert_right(&contenders, "deep_gemm", &dense(m, n, 128, dtype));
    }
}
