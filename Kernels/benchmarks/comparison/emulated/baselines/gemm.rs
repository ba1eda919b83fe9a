//! DeepGEMM's grouped products on Blackwell.

use contender::DeviceKind;
use numeric::DType;
use support::{Kind, Survivor, Table};
use workloads::{GemmProblem, GemmShape, GroupedGemmSuite, RowLayout};

const UP: GemmShape = GemmShape { n: 4096, k: 7168 };
const DOWN: GemmShape = GemmShape { n: 7168, k: 2048 };

fn grouped(shape: GemmShape, rows: usize, dtype: DType) -> GemmProblem {
    let layout = RowLayout::contiguous(vec![rows]);
    let workload = GroupedGemmSuite::custom(layout.groups(), layout.rows, shape.n, shape.k).2;
    GemmProblem::new(shape, layout, dtype, workload).unwrap()
}

#[test]
fn right_under_every_schedule() {
    let contenders = gemm_contenders::contenders(DeviceKind::Ptx);
    let mut table = Table::default();
    for dtype in [DType::Bf16, DType::F8E4M3, DType::Fp8Ue8m0] {
        table.assert_right(&contenders, "deep_gemm", &grouped(UP, 128, dtype));
    }
}

#[test]
fn mutants() {
    let (table, contenders) = (
        Table::default(),
        gemm_contenders::contenders(DeviceKind::Ptx),
    );
    // More tiles than multiprocessors: some blocks have a second one, whose buffers are used again.
    let problem = grouped(DOWN, 384, DType::Bf16);
    let survivor = |kind, why| Survivor {
        kind,
        count: 1,
        why,
    };
    let no_value = "no value shows it, and races are not watched";
    let survivors = [
        survivor(
            Kind::DropTensorWait,
            "by the rule for others' kernels a first use of its registers completes a load",
        ),
        survivor(Kind::DropWarpBarrier, "the lanes are together anyway"),
        survivor(Kind::DropProxyFence, no_value),
        survivor(Kind::DropInitFence, no_value),
        Survivor {
            kind: Kind::DropTensorFence,
            count: 2,
            why: no_value,
        },
    ];
    table.assert_mutants(&contenders, "deep_gemm", &problem, (1, 17), &survivors);
}
