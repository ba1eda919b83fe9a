//! Quack's kernels, made by CuTe DSL, and Liger's, made by Triton, from the PTX that their recipes keep; FlashInfer's.

use contender::DeviceKind;
use numeric::DType;
use support::Table;
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

fn problem(op: NormOp, rows: usize, columns: usize, weight: DType) -> NormProblem {
    let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
    let types = NormTypes {
        activation: DType::Bf16,
        weight,
    };
    NormProblem::new(op, shape, types, workload)
}

#[test]
fn right_under_every_schedule() {
    use NormOp::{
        CrossEntropyForward, CrossEntropyForwardBackward, FusedAddRmsNorm, LayerNormForward,
        RmsNormBackward, RmsNormForward, SoftmaxBackward, SoftmaxForward,
    };
    let contenders = norms_contenders::contenders(DeviceKind::Ptx);
    let mut table = Table::default();
    for op in [
        RmsNormForward,
        FusedAddRmsNorm,
        LayerNormForward,
        RmsNormBackward,
        SoftmaxForward,
        SoftmaxBackward,
        CrossEntropyForwardBackward,
    ] {
        let right = |table: &mut Table, name, columns| {
            table.assert_right(&contenders, name, &problem(op, 5, columns, DType::F32));
        };
        right(&mut table, "quack", 4096);
        right(&mut table, "liger", 768);
    }
    let longest = problem(CrossEntropyForward, 5, 12288, DType::F32);
    table.assert_right(&contenders, "quack", &longest);
    for (op, weight) in [
        (RmsNormForward, DType::Bf16),
        (FusedAddRmsNorm, DType::Bf16),
        (LayerNormForward, DType::F32),
    ] {
        let problem = problem(op, 5, 768, weight);
        table.assert_right(&contenders, "flashinfer_cuda", &problem);
    }
}
