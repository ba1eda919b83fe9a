//! Liger's Triton kernels for training, from the PTX that their recipe keeps, and FlashInfer's kernels.

use contender::DeviceKind;
use numeric::DType;
use support::Table;
use workloads::{TrainingOp, TrainingProblem, TrainingShape, TrainingSuite};

fn problem(op: &str, sizes: &[usize]) -> TrainingProblem {
    let op = TrainingOp::all().find(|known| known.name() == op).unwrap();
    let (shape, workload) = TrainingSuite::custom(TrainingShape::from_sizes(sizes).unwrap());
    TrainingProblem::new(op, shape, DType::Bf16, workload)
}

#[test]
fn right_under_every_schedule() {
    let contenders = training_contenders::contenders(DeviceKind::Ptx);
    let mut table = Table::default();
    for op in ["swiglu_fwd", "swiglu_bwd", "geglu_fwd", "geglu_bwd"] {
        table.assert_right(&contenders, "liger", &problem(op, &[5, 768]));
    }
    // Wide rows, which Liger cuts into tiles on Blackwell.
    table.assert_right(&contenders, "liger", &problem("swiglu_fwd", &[2, 18432]));
    for op in ["rope_fwd", "rope_bwd"] {
        table.assert_right(&contenders, "liger", &problem(op, &[2, 16, 8, 2, 64]));
    }
    for (op, sizes) in [
        ("silu_and_mul", &[5, 768][..]),
        ("gelu_and_mul", &[5, 768]),
        ("rope_fwd", &[2, 16, 8, 2, 64]),
        ("rope_interleaved_fwd", &[2, 16, 8, 2, 128]),
    ] {
        table.assert_right(&contenders, "flashinfer", &problem(op, sizes));
    }
}
