//! `report model`: sums that can be checked by hand, gaps that leave no sum, and the committed results.

use record::{ContenderKind, Row};
use report_lib::{find_model, model_questions, step, views, Phase, Step, StepOptions, View};
use report_testing::{committed, file, row, run};
use serde_json::{json, Map, Value};

fn options() -> StepOptions {
    StepOptions {
        phase: Phase::Decode,
        batch: 16,
        context: 8192,
        using: "ours".into(),
        gemm_dtype: "bf16".into(),
        dtype: "bf16".into(),
    }
}

/// A row of exactly this time on the shape of a question.
fn timed(op: &str, shape: &str, contender: &str, time_us: f64) -> Row {
    let kind = if contender == "ours" {
        ContenderKind::Own
    } else {
        ContenderKind::Baseline
    };
    let wobble = |round: usize| time_us * (1.0 + 0.001 * ((round % 3) as f64 - 1.0));
    let mut row = row(op, 1, contender, kind, (0..30).map(wobble).collect());
    let number = |text: &str| {
        text.parse::<u64>()
            .map_or_else(|_| json!(text), |number| json!(number))
    };
    let axes: Map<String, Value> = shape
        .split(',')
        .map(|axis| axis.split_once('=').unwrap())
        .map(|(axis, value)| (axis.to_owned(), number(value)))
        .collect();
    row.workload.axes = axes.into_iter().collect();
    if op == "decode" {
        row.workload.axes.remove("context");
        row.workload.axes.extend([
            ("kv_longest".to_owned(), json!(8192)),
            ("kv_tokens".to_owned(), json!(16 * 8192)),
        ]);
    }
    row.workload.name = shape.to_owned();
    row
}

/// Every part of a llama-3.1-8b step takes 10 us with ours; quack takes 8 us for the matrix products.
fn whole() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let model = find_model("llama-3.1-8b").unwrap();
    for (_, op, shape) in model_questions(&model, Phase::Decode, 16, 8192) {
        if rows
            .iter()
            .any(|row| row.op == op && row.workload.name == shape)
        {
            continue;
        }
        rows.push(timed(&op, &shape, "ours", 10.0));
        if op == "gemm" {
            rows.push(timed(
                &op,
                &shape,
                "quack",
                if shape.contains("28672") { 6.0 } else { 8.0 },
            ));
        }
    }
    rows
}

fn of(rows: Vec<Row>) -> Step {
    let views: Vec<View> = views(report_testing::collection(vec![file("NVIDIA H200", rows)]));
    step(&views[0], &find_model("llama-3.1-8b").unwrap(), &options())
}

#[test]
fn a_step_is_the_sum_of_its_parts() {
    let step = of(whole());
    // Nine parts in each of 32 layers, and two at the end.
    let total = step.total().unwrap();
    assert!(
        (total.us - 10.0 * (9.0 * 32.0 + 2.0)).abs() < 1e-6,
        "{total:?}"
    );
    assert!((step.layer().unwrap().us - 90.0).abs() < 1e-6);
    assert!(
        total.low < total.us && total.us < total.high && total.high / total.low < 1.002,
        "{total:?}"
    );
    assert!((step.rate(total.us) - 16.0 / total.us * 1e6).abs() < 1e-6);
    let swaps = step.swaps();
    let named: Vec<(&str, &str, &str)> = swaps
        .iter()
        .map(|swap| (swap.part, &*swap.from, &*swap.to))
        .collect();
    assert_eq!(named[0], ("gate and up", "ours", "quack"));
    assert_eq!(named.len(), 5);
    assert!(
        (swaps[0].saved_us.us - 4.0 * 32.0).abs() < 0.2,
        "{:?}",
        swaps[0]
    );
    assert!((swaps[4].saved_us.us - 2.0).abs() < 0.01, "{:?}", swaps[4]);
    // Another number is another sum.
    let mut slower = whole();
    let first = &mut slower[0];
    first.time.as_mut().unwrap().median_us = 11.0;
    assert!((of(slower).total().unwrap().us - total.us - 64.0).abs() < 1e-6);
}

#[test]
fn a_gap_leaves_no_total() {
    let mut rows = whole();
    rows.retain(|row| row.op != "rope_fwd");
    let step = of(rows);
    assert!(step.total().is_none() && step.layer().is_none());
    let missing: Vec<(&str, &str)> = step.missing().map(|(part, why)| (part.name, why)).collect();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].0, "rope");
    assert!(
        missing[0]
            .1
            .contains("'rope_fwd' has no time in these files"),
        "{missing:?}"
    );
    assert!((step.measured().us - 10.0 * (8.0 * 32.0 + 2.0)).abs() < 1e-6);
}

#[test]
fn what_lies_between_is_interpolated_and_in_doubt() {
    let mut rows = whole();
    rows.retain(|row| row.op != "silu_and_mul");
    rows.push(timed("silu_and_mul", "rows=4,columns=14336", "ours", 5.0));
    rows.push(timed("silu_and_mul", "rows=64,columns=14336", "ours", 20.0));
    let step = of(rows.clone());
    let line = step
        .lines
        .iter()
        .find(|line| line.part.name == "activation")
        .unwrap();
    let (timed_line, total) = (line.timed.as_ref().unwrap(), line.total().unwrap());
    assert!(timed_line.interpolated());
    assert_eq!(timed_line.workloads.len(), 2);
    // Halfway between 4 and 64 rows, in logarithms.
    assert!((total.us / 32.0 - 10.0).abs() < 1e-6, "{total:?}");
    assert!(
        total.low / 32.0 <= 5.0 && total.high / 32.0 >= 20.0,
        "{total:?}"
    );
    let whole = step.total().unwrap();
    assert!(whole.high - whole.us >= 32.0 * 10.0, "{whole:?}");
    rows.retain(|row| row.workload.name != "rows=64,columns=14336");
    assert!(of(rows).total().is_none());
}

#[test]
fn the_committed_results_say_what_they_have_and_what_they_lack() {
    let folder = tempfile::tempdir().unwrap();
    let suite = committed("suite.json.gz");
    let arguments = [
        "model",
        "llama-3.1-8b",
        suite.to_str().unwrap(),
        "--batch",
        "16",
        "--context",
        "8192",
    ];
    let (code, said, told) = run(folder.path(), &arguments);
    assert_eq!(code, 3, "{said}{told}");
    for part in [
        "4002 [3960, 4025] us  ours; llama/llama8b_b16s8192_p16\n",
        "1887 [1860, 1909] us  ours (fastest: cublaslt_first); llama/16x28672x4096\n",
        "no total: 3 of 11 parts have no measured row near; the others take 7968 [7917, 8021] us\n",
        "the swap that buys most: gate and up from ours to cublaslt_first saves 109.9 [76.72, 133.2] us\n",
        "bench_gemm --configs 16x128256x4096 --dtype bf16\n",
        "bench_training_ops --op rope_fwd --configs 16x1x32x8x128\n",
        "llama-3.1-8b prefill: batch 16, context 8192, 131072 new tokens on NVIDIA H200\n",
    ] {
        assert!(said.contains(part), "no '{part}' in {said}");
    }
    for (arguments, part) in [
        (
            [
                "model",
                "gpt-9",
                suite.to_str().unwrap(),
                "--batch",
                "1",
                "--context",
                "1",
            ],
            "is not a known model",
        ),
        (
            [
                "model",
                "phi-4",
                suite.to_str().unwrap(),
                "--batch",
                "0",
                "--context",
                "1",
            ],
            "0 is not in 1",
        ),
        (
            [
                "model",
                "phi-4",
                "nothing.json",
                "--batch",
                "1",
                "--context",
                "1",
            ],
            "nothing.json",
        ),
    ] {
        let (code, _, told) = run(folder.path(), &arguments);
        assert!(code == 2 && told.contains(part), "{code} {told}");
    }
}
