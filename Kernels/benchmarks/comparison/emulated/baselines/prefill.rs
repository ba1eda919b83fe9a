//! FlashInfer's CUTLASS prefill on Blackwell.

use contender::DeviceKind;
use numeric::DType;
use support::{Kind, Survivor, Table};
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

/// Prompts and cached prefixes that end inside of tiles, which have 256 queries and 128 keys.
fn ragged(q_lens: &[usize], kv_lens: &[usize]) -> PrefillProblem {
    let shape = PrefillShape {
        q_lens: q_lens.to_vec(),
        kv_lens: kv_lens.to_vec(),
        heads: 4,
        kv_heads: 2,
        head_dim: 128,
        value_dim: None,
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

#[test]
fn mutants() {
    let (table, contenders) = (
        Table::default(),
        prefill_contenders::contenders(DeviceKind::Ptx),
    );
    // More steps over keys than stages; one tile of queries per block.
    let problem = ragged(&[130], &[900]);
    let survivor = |kind, why| Survivor {
        kind,
        count: 1,
        why,
    };
    let no_value = "no value shows it, and races are not watched";
    let last = "a block's only tile: its buffer is not used again";
    let survivors = [
        survivor(Kind::DropBulkWait, last),
        survivor(Kind::DropArrive, last),
        survivor(
            Kind::DropTensorWait,
            "stores to tensor memory land at once here; races, which are not watched, ask for it",
        ),
        survivor(Kind::DropWarpBarrier, "the lanes are together anyway"),
        survivor(Kind::DropProxyFence, no_value),
        survivor(Kind::DropInitFence, no_value),
        survivor(
            Kind::Accumulate,
            "the first product of a step, which adds to nothing",
        ),
    ];
    let name = "flashinfer_cutlass";
    table.assert_mutants(&contenders, name, &problem, (1, 18), &survivors);
}
