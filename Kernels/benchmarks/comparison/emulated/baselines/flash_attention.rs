//! FlashAttention-4, made by CuTe DSL, from the PTX that its recipe keeps.

use flash_attention_contender::contenders;
use numeric::DType;
use support::Table;
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

fn problem(q_lens: &[usize], kv_lens: &[usize]) -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: q_lens.to_vec(),
        kv_lens: kv_lens.to_vec(),
        heads: 4,
        kv_heads: 1,
        head_dim: 128,
        value_dim: None,
        causal: true,
    };
    let workload = PrefillSuite::custom(format!("{q_lens:?} of {kv_lens:?}"));
    PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload).unwrap()
}

#[test]
fn right_under_every_schedule() {
    let mut table = Table::default();
    // Dense, and lengths that differ; both end inside of tiles.
    for problem in [problem(&[300], &[300]), problem(&[130, 77], &[300, 77])] {
        table.assert_right(&contenders(), "flash_attention_4", &problem);
    }
}
