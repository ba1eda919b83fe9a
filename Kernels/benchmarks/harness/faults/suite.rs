//! The fault suite: one run of `fault_bench` with every contender, and the expected outcomes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Contender, status, and parts of the reason, one of which names the fault. The reason of a crash
/// differs between devices; on a busy CPU a late write may escape the watcher, but not the check.
const EXPECTED: [(&str, &str, &[&str]); 34] = [
    ("honest", "ok", &[""]),
    ("baseline", "ok", &[""]),
    ("wrong_result", "wrong", &["the oracle says"]),
    ("not_a_number", "wrong", &["non-finite"]),
    ("unwritten_tail", "wrong", &["unwritten"]),
    ("out_of_bounds", "wrong", &["canary"]),
    ("input_mutation", "wrong", &["changed the input 'x'"]),
    ("cached_output", "wrong", &["cached"]),
    (
        "other_stream",
        "wrong",
        &["stream order", "unwritten", "non-finite"],
    ),
    ("idle_when_timed", "wrong", &["unwritten"]),
    ("abort_when_timed", "error", &["signal: 6"]),
    ("illegal_address", "error", &["signal: 11", "illegal"]),
    ("infinite_loop", "timeout", &["hung"]),
    ("exit", "error", &["exit status: 0"]),
    ("abort", "error", &["signal: 6"]),
    ("allocation_failure", "error", &["bytes"]),
    ("planned", "ok", &[""]),
    ("abort_planning", "ok", &[""]),
    ("unsupported", "unsupported", &["never"]),
    ("one_percent_more", "ok", &[""]),
    ("slow", "ok", &[""]),
    ("senses_nan", "wrong", &["unwritten"]),
    ("senses_garbage", "wrong", &["unwritten"]),
    ("memoises", "invalid", &["remembers answers"]),
    ("memoises_half", "invalid", &["remembers answers"]),
    ("skips_repeats", "invalid", &["remembers answers"]),
    ("previous_answer", "wrong", &["cached"]),
    ("precomputed", "wrong", &["cached"]),
    ("every_third_call", "wrong", &["unwritten"]),
    ("only_first_set", "wrong", &["unwritten"]),
    ("right_ends", "wrong", &["the oracle says"]),
    ("low_precision_tail", "wrong", &["the oracle says"]),
    ("cheaper_when_timed", "wrong", &["the oracle says"]),
    ("half_when_timed", "wrong", &["unwritten"]),
];

/// Runs the suite.
///
/// # Panics
/// If a fault is not caught by its name, or an honest row is harmed.
pub fn check(program: &Path, device: &str, result: &Path) {
    let start = Instant::now();
    let output = Command::new(program)
        .args([
            "--device",
            device,
            "--configs",
            "64x96",
            "--dtype",
            "f32",
            "--timeout-s",
            "5",
        ])
        .arg("--json")
        .arg(result)
        .output()
        .expect("fault_bench starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(1),
        "failures were expected:\n{stderr}"
    );
    assert!(
        start.elapsed() < Duration::from_secs(120),
        "took {:?}",
        start.elapsed()
    );
    let text = std::fs::read_to_string(result).expect("a result file");
    let file: Value = serde_json::from_str(&text).expect("a valid result file");
    assert_eq!(file["meta"]["complete"], true);
    let rows = file["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), EXPECTED.len());
    for (name, status, reasons) in EXPECTED {
        let row = rows.iter().find(|row| row["contender"]["name"] == name);
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        assert_eq!(row["status"], status, "{name}: {}", row["reason"]);
        let found = row["reason"].as_str().unwrap_or("");
        let named = reasons.iter().any(|reason| found.contains(reason));
        assert!(
            named,
            "{name}: the reason '{found}' has none of {reasons:?}"
        );
        let timed = row["time"]["median_us"].as_f64().is_some_and(|us| us > 0.0);
        assert_eq!(timed, status == "ok", "{name} has a time: {timed}");
    }
    let honest = rows
        .iter()
        .find(|row| row["contender"]["name"] == "honest")
        .expect("honest");
    assert_eq!(honest["verified"], true);
    assert_eq!(honest["speedup"]["baseline"], "baseline");
}
