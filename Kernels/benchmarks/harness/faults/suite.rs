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
    (
        "cheaper_when_timed",
        "wrong",
        &["the oracle says", "the reference says"],
    ),
    ("half_when_timed", "wrong", &["unwritten"]),
];

/// What only a CUDA device can show, and what differs between the two.
const EXPECTED_ON_CPU: [(&str, &str, &[&str]); 12] = [
    ("early_when_timed", "invalid", &["outside of its calls"]),
    ("memoises_until_judged", "invalid", &["remembers answers"]),
    ("idle_when_judged", "wrong", &["unwritten"]),
    ("memoises_at_times", "invalid", &["remembers answers"]),
    ("copies_others", "invalid", &["remembers answers"]),
    ("finishes_late", "wrong", &["stream order", "unwritten"]),
    (
        "slacks_elsewhere",
        "wrong",
        &["the oracle says", "the reference says"],
    ),
    ("early_launch", "invalid", &["outside of its calls"]),
    ("side_stream", "unsupported", &["CUDA only"]),
    ("host_work", "unsupported", &["CUDA only"]),
    ("pins_inputs", "unsupported", &["CUDA only"]),
    ("pins_nothing", "unsupported", &["CUDA only"]),
];
const EXPECTED_ON_CUDA: [(&str, &str, &[&str]); 12] = [
    ("early_when_timed", "unsupported", &["CPU only"]),
    ("memoises_until_judged", "unsupported", &["CPU only"]),
    ("idle_when_judged", "unsupported", &["CPU only"]),
    ("memoises_at_times", "unsupported", &["CPU only"]),
    ("copies_others", "unsupported", &["CPU only"]),
    ("finishes_late", "unsupported", &["CPU only"]),
    ("slacks_elsewhere", "unsupported", &["CPU only"]),
    ("early_launch", "invalid", &["on another stream"]),
    ("side_stream", "invalid", &["on another stream"]),
    ("host_work", "invalid", &["host work"]),
    ("pins_inputs", "ok", &[""]),
    ("pins_nothing", "ok", &[""]),
];

/// Runs the suite.
///
/// # Panics
/// If a fault is not caught by its name, or an honest row is harmed.
pub fn check(program: &Path, device: &str, result: &Path) {
    let here = match device {
        "cpu" => EXPECTED_ON_CPU,
        _ => EXPECTED_ON_CUDA,
    };
    let expected = || EXPECTED.into_iter().chain(here);
    let names: Vec<&str> = expected().map(|(name, ..)| name).collect();
    let start = Instant::now();
    let rows = raced(program, device, &names, result, Some(1));
    assert!(
        start.elapsed() < Duration::from_secs(120),
        "took {:?}",
        start.elapsed()
    );
    for (name, status, reasons) in expected() {
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

/// Races some contenders on a small problem: their rows.
fn raced(
    program: &Path,
    device: &str,
    contenders: &[&str],
    result: &Path,
    code: Option<i32>,
) -> Vec<Value> {
    let output = Command::new(program)
        .args(["--device", device, "--configs", "64x96", "--dtype", "f32"])
        .args(["--timeout-s", "5", "--contenders", &contenders.join(",")])
        .arg("--json")
        .arg(result)
        .output()
        .expect("fault_bench starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), code, "{stderr}");
    let text = std::fs::read_to_string(result).expect("a result file");
    let file: Value = serde_json::from_str(&text).expect("a valid result file");
    assert_eq!(file["meta"]["complete"], true);
    let rows = file["rows"].as_array().expect("rows").clone();
    assert_eq!(rows.len(), contenders.len());
    rows
}

/// Races a contender that ends the process in the turn of another.
///
/// # Panics
/// If anybody answers for it but itself.
pub fn check_late_end(program: &Path, device: &str, result: &Path) {
    let contenders = ["honest", "baseline", "slow", "abort_later"];
    for row in raced(program, device, &contenders, result, Some(1)) {
        let name = row["contender"]["name"].as_str().unwrap_or("");
        let (status, reason) = match name {
            "abort_later" => ("error", "signal: 6"),
            _ => ("ok", ""),
        };
        let found = row["reason"].as_str().unwrap_or("");
        assert_eq!(row["status"], status, "{name}: {found}");
        assert!(found.contains(reason), "{name}: '{found}' lacks '{reason}'");
    }
}

/// Races a contender whose threads wait actively after its calls, on the CPU.
///
/// # Panics
/// If another is timed meanwhile.
pub fn check_rest(program: &Path, result: &Path) {
    let contenders = ["honest", "baseline", "spins_on", "needs_rest"];
    for row in raced(program, "cpu", &contenders, result, Some(0)) {
        assert_eq!(row["status"], "ok", "{row}");
    }
}

/// Times a contender alone in a problem that fits in the cache many times.
fn alone(program: &Path, contender: &str, cache: &str, result: &Path) -> f64 {
    let output = Command::new(program)
        .args([
            "--device",
            "cuda",
            "--configs",
            "2048x1024",
            "--dtype",
            "f32",
        ])
        .args(["--contenders", contender, "--cache", cache, "--json"])
        .arg(result)
        .output()
        .expect("fault_bench starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{contender}: {stderr}");
    let text = std::fs::read_to_string(result).expect("a result file");
    let file: Value = serde_json::from_str(&text).expect("a valid result file");
    let median_us = file["rows"][0]["time"]["median_us"].as_f64();
    median_us.expect("the row has a time")
}

/// Measures on CUDA whether a cold cache is cold for a contender that asks it to keep its inputs.
///
/// # Panics
/// If its time is not that of the same kernel without such wishes, or if a warm cache would not show.
pub fn check_cold_cache(program: &Path, result: &Path) {
    let time = |contender, cache| alone(program, contender, cache, result);
    let (plain, hot) = (time("pins_nothing", "cold"), time("pins_nothing", "hot"));
    let pinned = time("pins_inputs", "cold");
    println!("cold {plain:.3} us, cold and pinned {pinned:.3} us, hot {hot:.3} us");
    assert!(hot < 0.9 * plain, "hot {hot} us, cold {plain} us");
    let ratio = pinned / plain;
    assert!(
        (ratio - 1.0).abs() < 0.05,
        "pinned inputs take {ratio:.3} of the time"
    );
}
