//! The example in CUTLASS through the benches' gate.

mod linked;

use numeric::DType;
use support::Table;
use workloads::{GemmProblem, GemmShape, GemmSuite, RowLayout};

#[test]
fn right_under_every_schedule() {
    let mut table = Table::default();
    // Tiles that nothing fills; a pipeline that wraps, with two clusters side by side.
    for (m, n, k) in [(40, 24, 72), (264, 136, 640)] {
        let workload = GemmSuite::custom(m, n, k).2;
        let layout = RowLayout::dense(m);
        let problem = GemmProblem::new(GemmShape { n, k }, layout, DType::Bf16, workload).unwrap();
        table.assert_right(&linked::contenders(), linked::NAME, &problem);
    }
}
