//! Workload files say every suite's shapes, and nothing impossible comes in.

use std::fmt::Debug;

use contender::{Entry, Shape, Workload};
use serde_json::{json, Value};

use crate::{
    DecodeSuite, GemmSuite, GroupedGemmSuite, MlaSuite, NormOp, NormSuite, NsaSuite, PrefillSuite,
    TrainingOp, TrainingSuite,
};

/// The shape of each entry survives the way to a file and back.
fn assert_written<W: Entry + Clone, S: PartialEq + Debug>(
    entries: Vec<W>,
    shape: impl Fn(&W) -> S,
) {
    assert!(!entries.is_empty());
    for entry in entries {
        let written = entry.to_file();
        let back = W::from_file(&written, None).unwrap_or_else(|why| panic!("{written:?}: {why}"));
        assert_eq!(shape(&back), shape(&entry));
    }
}

#[test]
fn every_suite_survives_the_way_to_a_file() {
    for op in NormOp::all() {
        let all = NormSuite::all().flat_map(|suite| suite.workloads(op));
        assert_written(all.collect(), |(shape, _)| *shape);
    }
    for op in TrainingOp::all() {
        let all = TrainingSuite::all().flat_map(|suite| suite.workloads(op));
        assert_written(all.collect(), |(shape, _)| *shape);
    }
    let all = GemmSuite::all().flat_map(|suite| suite.workloads());
    assert_written(all.collect(), |(shape, layout, _)| (*shape, layout.clone()));
    let all = GroupedGemmSuite::all().flat_map(|suite| suite.workloads());
    assert_written(all.collect(), |(shape, layout, _)| (*shape, layout.clone()));
    let with_op = |(shape, workload): (crate::PrefillShape, Workload)| {
        (crate::PrefillOp::Prefill, shape, workload)
    };
    let all = PrefillSuite::all()
        .flat_map(|suite| suite.workloads())
        .map(with_op);
    assert_written(all.collect(), |(_, shape, _)| shape.clone());
    let all = DecodeSuite::all().flat_map(|suite| suite.workloads());
    assert_written(all.collect(), |(shape, _)| shape.clone());
    let all = MlaSuite::all().flat_map(|suite| suite.workloads());
    assert_written(all.collect(), |(shape, _)| shape.clone());
    let all = NsaSuite::all().flat_map(|suite| suite.workloads());
    assert_written(all.collect(), |(shape, _)| *shape);
}

fn shape(value: Value) -> Shape {
    match value {
        Value::Object(shape) => shape,
        other => panic!("{other} is not a shape"),
    }
}

fn refused<W: Entry>(value: Value) -> String {
    match W::from_file(&shape(value.clone()), None) {
        Ok(_) => panic!("{value} came in"),
        Err(reason) => reason,
    }
}

#[test]
fn what_nobody_can_compute_is_refused_by_its_reason() {
    type Rows = (crate::RowShape, Workload);
    type Products = (crate::GemmShape, crate::RowLayout, Workload);
    type Prompts = (crate::PrefillOp, crate::PrefillShape, Workload);
    type Steps = (crate::DecodeShape, Workload);
    type Latent = (crate::MlaShape, Workload);
    type Sparse = (crate::NsaShape, Workload);
    type Training = (crate::TrainingShape, Workload);
    let huge = 1u64 << 40;
    for (reason, part) in [
        (
            refused::<Rows>(json!({"rows": 3})),
            "missing field `columns`",
        ),
        (
            refused::<Rows>(json!({"rows": 3, "columns": 0})),
            "columns is 0",
        ),
        (
            refused::<Rows>(json!({"rows": -3, "columns": 5})),
            "invalid value",
        ),
        (
            refused::<Rows>(json!({"rows": 3, "columns": 5, "depth": 1})),
            "unknown field `depth`",
        ),
        (
            refused::<Rows>(json!({"rows": huge, "columns": huge})),
            "more than 2^40 elements",
        ),
        (
            refused::<Rows>(json!({"rows": u64::MAX, "columns": 2})),
            "more than 2^40 elements",
        ),
        (
            refused::<Products>(json!({"m": 1, "n": 0, "k": 128})),
            "n is 0",
        ),
        (
            refused::<Products>(json!({"tokens": [], "n": 1, "k": 1, "layout": "contiguous"})),
            "empty",
        ),
        (
            refused::<Products>(json!({"tokens": [0], "n": 1, "k": 1, "layout": "contiguous"})),
            "all groups",
        ),
        (
            refused::<Products>(json!({"tokens": [3], "n": 8, "k": 128, "layout": "masked"})),
            "rows_per_group",
        ),
        (
            refused::<Products>(
                json!({"tokens": [3], "n": 8, "k": 128, "layout": "masked", "rows_per_group": 2}),
            ),
            "a group of 3 rows",
        ),
        (
            refused::<Prompts>(
                json!({"q_lens": [9], "kv_lens": [8], "heads": 4, "kv_heads": 2,
                "head_dim": 64, "causal": true}),
            ),
            "9 queries and 8 keys",
        ),
        (
            refused::<Prompts>(
                json!({"q_lens": [u64::MAX, 1], "kv_lens": [8, 8], "heads": 4,
                "kv_heads": 2, "head_dim": 64, "causal": false}),
            ),
            "add up to more than 2^30",
        ),
        (
            refused::<Prompts>(
                json!({"q_lens": [8], "kv_lens": [8], "heads": 4, "kv_heads": 2,
                "head_dim": 64, "value_dim": 0, "causal": true}),
            ),
            "value dim 0",
        ),
        (
            refused::<Prompts>(
                json!({"q_lens": [8], "kv_lens": [8], "heads": 4, "kv_heads": 2,
                "head_dim": 64, "value_dim": u64::MAX, "causal": true}),
            ),
            "value dim 18446744073709551615",
        ),
        (
            refused::<Prompts>(
                json!({"q_lens": [8], "kv_lens": [8], "heads": 4, "kv_heads": 2,
                "head_dim": 64, "value_dim": -1, "causal": true}),
            ),
            "invalid value",
        ),
        (
            refused::<Steps>(
                json!({"lengths": vec![1; 5000], "heads": 4, "kv_heads": 2, "head_dim": 64}),
            ),
            "5000 entries",
        ),
        (
            refused::<Steps>(
                json!({"lengths": [4, 1], "heads": 4, "kv_heads": 2, "head_dim": 64,
                "q_len": 2}),
            ),
            "sequence 1 has 1 tokens",
        ),
        (
            refused::<Steps>(json!({"lengths": [4], "heads": 5, "kv_heads": 2, "head_dim": 64})),
            "not a multiple",
        ),
        (
            refused::<Steps>(
                json!({"lengths": [4], "heads": 4, "kv_heads": 2, "head_dim": 64,
                "page_size": huge}),
            ),
            "more than 2^40",
        ),
        (
            refused::<Latent>(json!({"lengths": [4], "heads": 0})),
            "heads is 0",
        ),
        (
            refused::<Latent>(json!({"lengths": [1], "heads": 8, "q_len": 2})),
            "fewer than its 2",
        ),
        (
            refused::<Sparse>(
                json!({"batch": 1, "sequence": 64, "heads": 3, "groups": 2, "dim": 64,
                "block": 32, "selected": 4}),
            ),
            "evenly among 2 groups",
        ),
        (
            refused::<Sparse>(
                json!({"batch": 1, "sequence": 64, "heads": 2, "groups": 2, "dim": 64, "block": 32,
                "selected": 1u64 << 31}),
            ),
            "more than 2^30 indices",
        ),
        (
            refused::<Training>(
                json!({"batch": 1, "sequence": 2, "query_heads": 2, "key_heads": 1,
                "dim": 63}),
            ),
            "63",
        ),
    ] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn what_a_file_leaves_out_is_what_servers_do() {
    let given = shape(json!({"lengths": [5, 9], "heads": 4, "kv_heads": 2, "head_dim": 64}));
    let (shape, workload) = <(crate::DecodeShape, Workload)>::from_file(&given, None).unwrap();
    assert_eq!((shape.q_len, shape.page_size), (1, 16));
    assert_eq!(workload.axes["kv_lens"], json!([5, 9]));
    let given = self::shape(json!({"lengths": [5, 9], "heads": 4}));
    let (shape, workload) = <(crate::MlaShape, Workload)>::from_file(&given, None).unwrap();
    assert_eq!((shape.page_size, shape.kv_type), (64, crate::KvType::Same));
    assert!(!workload.axes.contains_key("kv_dtype"));
}
