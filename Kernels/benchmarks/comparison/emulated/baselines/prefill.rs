//! FlashInfer's CUTLASS prefill on Blackwell.

use contender::DeviceKind;
use numeric::DType;
use support::Table;
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

/// Prompts and cached prefixes that end inside of tiles, which have 256 queries and 128 keys.
fn ragged(q_lens: &[usize], kv_lens: &[usize]) -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: q_lens.to_vec(),
        kv_lens: kv_lens.to_vec(),
        heads: 4,
        kv_heads: 2,
        head_dim: 128,
        causal: true,
    };
    let workload = PrefillSuite::custom(format!("{q_lens:?} of {kv_lens:?}"));
    PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload).unwrap()
}

#[test]
fn right_under_every_schedule() {
    let contenders = prefill_contenders::contenders(DeviceKind::Ptx);
    let mut table = Table::default();
    for problem in [
        ragged(&[300, 1, 130], &[300, 77, 900]),
        ragged(&[64], &[64]),
    ] {
        table.assert_right(&contenders, "flashinfer_cutlass", &problem);
    }
}
