//! DeepGEMM's dense products: kernels that take n and k as arguments.

use contender::DeviceKind;
use numeric::DType;
use support::{is_blackwell, is_hopper, Table};
use workloads::{GemmProblem, GemmShape, GemmSuite, RowLayout};

fn dense(m: usize, n: usize, k: usize, dtype: DType) -> GemmProblem {
    let workload = GemmSuite::custom(m, n, k).2;
    GemmProblem::new(GemmShape { n, k }, RowLayout::dense(m), dtype, workload).unwrap()
}

fn assert_right(shapes: &[(usize, usize, usize)], dtypes: &[DType]) {
    let contenders = gemm_contenders::contenders(DeviceKind::Ptx);
    let mut table = Table::default();
    for &dtype in dtypes {
        for &(m, n, k) in shapes {
            table.assert_right(&contenders, "deep_gemm", &dense(m, n, k, dtype));
        }
    }
}

#[test]
fn hopper() {
    if !is_hopper() {
        return;
    }
    // Tiles of 64 x 16, 16 x 32 and 64 x 32, which the rows and columns do not fill.
    let small = [(40, 16, 256), (8, 2176, 128), (100, 1152, 256)];
    assert_right(&small, &[DType::Bf16, DType::F8E4M3]);
    // The blocks of a cluster share b along rows, and a along columns.
    assert_right(&[(2048, 2432, 128)], &[DType::F8E4M3]);
    assert_right(&[(1500, 5376, 128)], &[DType::Bf16]);
}

#[test]
fn blackwell() {
    if !is_blackwell() {
        return;
    }
    // Tiles of 64 x 16, of pairs 128 x 16 and 128 x 64, and transposed of one block 16 x 128 and of pairs 32 x 128,
    // which the rows and columns do not fill; the depth is no multiple of the four scales that a word has.
    let small = [
        (40, 64, 640),
        (130, 72, 640),
        (130, 2624, 384),
        (65, 64, 384),
        (1344, 136, 384),
    ];
    let dtypes = [DType::F8E4M3, DType::Fp8Ue8m0, DType::Mxfp8, DType::Mxfp4];
    assert_right(&small, &dtypes);
    // Transposed pairs of 64 x 128, and pairs of 128 x 256, whose sums and scales share columns of tensor memory.
    assert_right(&[(300, 2752, 128), (1216, 3200, 384)], &[DType::F8E4M3]);
}
