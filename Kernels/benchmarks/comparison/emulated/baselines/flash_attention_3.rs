//! FlashAttention-3's kernels for Hopper, compiled from its sources.

use flash_attention_3_contender::contenders;
use numeric::DType;
use support::Table;
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

fn problem(q_lens: &[usize], kv_lens: &[usize], heads: usize, kv_heads: usize) -> PrefillProblem {
    problem_of([128, 128], q_lens, kv_lens, heads, kv_heads)
}

fn problem_of(
    [head_dim, value_dim]: [usize; 2],
    q_lens: &[usize],
    kv_lens: &[usize],
    heads: usize,
    kv_heads: usize,
) -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: q_lens.to_vec(),
        kv_lens: kv_lens.to_vec(),
        heads,
        kv_heads,
        head_dim,
        value_dim: (value_dim != head_dim).then_some(value_dim),
        causal: true,
    };
    let workload = PrefillSuite::custom(format!(
        "{q_lens:?} of {kv_lens:?}, {heads}/{kv_heads} heads of {head_dim} and {value_dim}"
    ));
    PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload).unwrap()
}

#[test]
fn right_under_every_schedule() {
    let mut table = Table::default();
    for problem in [
        // Dense, with a tile that is not full, and with cached keys.
        problem(&[300], &[300], 2, 2),
        problem(&[256], &[400], 4, 2),
        // Lengths that differ, a sequence without queries, and groups that do not divide a tile.
        problem(&[130, 0, 77], &[300, 5, 77], 3, 1),
        // Other head dimensions, some with values of their own.
        problem_of([64, 64], &[200], &[330], 2, 1),
        problem_of([64, 64], &[130, 0, 77], &[300, 5, 77], 2, 1),
        problem_of([192, 128], &[150], &[300], 2, 2),
        problem_of([192, 128], &[130, 0, 77], &[300, 5, 77], 1, 1),
        problem_of([256, 256], &[150], &[200], 1, 1),
        problem_of([256, 256], &[130, 0, 77], &[170, 5, 77], 2, 1),
    ] {
        table.assert_right(&contenders(), "flash_attention_3", &problem);
    }
}
