//! FlashInfer's CUTLASS kernel for latent attention on Blackwell.

use contender::DeviceKind;
use numeric::DType;
use support::Table;
use workloads::{KvType, MlaDecodeProblem, MlaShape, MlaSuite};

/// Tokens of a cache whose pages lie apart.
fn decode(lengths: &[usize], page_size: usize) -> MlaDecodeProblem {
    let shape = MlaShape {
        lengths: lengths.to_vec(),
        q_len: 1,
        heads: 128,
        page_size,
        kv_type: KvType::Same,
    };
    let workload = MlaSuite::custom(&shape);
    MlaDecodeProblem::new(shape, DType::Bf16, workload)
}

/// Tiles of 128 tokens, split and merged. The kernel calls a stage full once at most eleven groups of copies are under
/// way, of which the stage's own is the oldest: it waits for one too few.
#[test]
fn right_but_for_a_wait() {
    let (table, contenders) = (
        Table::default(),
        mla_contenders::contenders(DeviceKind::Ptx),
    );
    let (problem, name) = (decode(&[384, 128], 32), "flashinfer_mla_cutlass");
    let repair = ("cp.async.wait_group 11;", "cp.async.wait_group 10;");
    table.assert_right_once_repaired(&contenders, name, &problem, repair);
}
