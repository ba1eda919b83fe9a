//! The example in CUDA C++ through the benches' gate.

mod linked;

use numeric::DType;
use support::Table;
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

#[test]
fn right_under_every_schedule() {
    let mut table = Table::default();
    for (rows, columns) in [(3, 320), (2, 1001)] {
        let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
        let types = NormTypes {
            activation: DType::Bf16,
            weight: DType::Bf16,
        };
        let problem = NormProblem::new(NormOp::RmsNormForward, shape, types, workload);
        table.assert_right(&linked::contenders(), linked::NAME, &problem);
    }
}
