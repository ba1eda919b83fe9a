//! Operations of one's own in whole runs of the bench: oracles that fail in every way are a clear error, problem files
//! that are not sound are wrong usage, and what is sound is raced as everything else.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{json, Value};
use tempfile::TempDir;

fn file(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names it");
    fs::canonicalize(path).expect("it exists")
}

fn library(name: &str) -> String {
    let path = file("ORACLE").with_file_name(format!("lib{name}.so"));
    path.display().to_string()
}

fn problem() -> Value {
    json!({
        "problem_version": 1,
        "op": "doubled",
        "axes": ["rows", "columns"],
        "shapes": [{"rows": 8, "columns": 96}],
        "dtypes": ["f32"],
        "tensors": [
            {"name": "x", "role": "input", "dtype": "same", "shape": ["rows", "columns"], "families": ["outliers"]},
            {"name": "out", "role": "output", "dtype": "same", "shape": ["rows", "columns"]},
            {"name": "sum", "role": "output", "dtype": "same", "shape": ["rows"],
             "tolerance": {"relative": 1e-5, "absolute": 1e-5}}
        ],
        "units": "rows",
        "cost": {"operations": "2 * rows * columns"},
        "tolerance": {"roundings": 2}
    })
}

struct Run {
    output: Output,
    stderr: String,
    rows: Vec<Value>,
    folder: TempDir,
}

fn race(problem: &str, oracle: &str, more: &[&str]) -> Run {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("problem.json"), problem).expect("written");
    let output = Command::new(file("BENCH_OWN"))
        .current_dir(folder.path())
        .env_remove("BUILD_WORKING_DIRECTORY")
        .args(["--device", "cpu", "--iters", "12", "--json", "run.json"])
        .args(["--problem", "problem.json", "--oracle", oracle])
        .args(more)
        .output()
        .expect("it starts");
    let text = fs::read_to_string(folder.path().join("run.json")).unwrap_or_default();
    let result: Value = serde_json::from_str(&text).unwrap_or_default();
    Run {
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        output,
        rows: result["rows"].as_array().cloned().unwrap_or_default(),
        folder,
    }
}

#[test]
fn a_sound_operation_is_raced_as_everything_else() {
    let (right, wrong) = (
        format!("right={}", library("doubled")),
        format!("wrong={}?wrong_on_outliers", library("doubled")),
    );
    let contenders = ["--contender", &right, "--contender", &wrong];
    let run = race(&problem().to_string(), &library("oracle"), &contenders);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.stderr);
    let [right, wrong] = &run.rows[..] else {
        panic!("two rows: {}", run.stderr);
    };
    assert_eq!(right["status"], "ok", "{}", right["reason"]);
    assert!(right["time"]["median_us"].as_f64() > Some(0.0));
    assert_eq!(right["verified"], true);
    assert_eq!(right["op"], "doubled");
    assert_eq!(right["workload"]["name"], "8x96");
    let errors = right["errors"].as_array().expect("of every output");
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0]["sampled"], 8 * 96);
    assert!(errors[1]["budget"]["max_abs"].as_f64() >= Some(1e-5));
    let repro = right["repro"].as_str().unwrap_or("");
    assert!(repro.contains("--problem problem.json --oracle"), "{repro}");
    // Only another kind of inputs shows it.
    assert_eq!(wrong["status"], "wrong");
    let reason = wrong["reason"].as_str().unwrap_or("");
    assert!(
        reason.contains("the oracle says") && reason.contains("(inputs: outliers)"),
        "{reason}"
    );
}

#[test]
fn shapes_may_be_given_as_to_every_bench() {
    let contender = library("doubled");
    let more = ["--contender", &contender, "--configs", "3x17,5x1"];
    let run = race(&problem().to_string(), &library("oracle"), &more);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.stderr);
    let names: Vec<_> = run
        .rows
        .iter()
        .map(|row| &row["workload"]["name"])
        .collect();
    assert_eq!(names, ["3x17", "5x1"]);
    let more = ["--contender", &contender, "--configs", "3x17x2"];
    let run = race(&problem().to_string(), &library("oracle"), &more);
    assert_eq!(run.output.status.code(), Some(2));
    assert!(
        run.stderr.contains("expected rowsxcolumns"),
        "{}",
        run.stderr
    );
    let workloads = json!({"workloads_version": 1, "bench": "bench_own", "suite": "mine", "workloads": [
        {"name": "small", "shape": {"rows": 2, "columns": 3}, "provenance": "made up", "weight": 2.0}]});
    let path = run.folder.path().join("workloads.json");
    fs::write(&path, workloads.to_string()).expect("written");
    let path = path.display().to_string();
    let more = ["--contender", &contender, "--workloads", &path];
    let run = race(&problem().to_string(), &library("oracle"), &more);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.stderr);
    assert_eq!(run.rows[0]["workload"]["suite"], "mine");
}

#[test]
fn an_oracle_that_fails_is_a_clear_error() {
    let contender = library("doubled");
    let variant = |fault: &str| format!("{}?{fault}", library("oracle"));
    let broken = |fault: &str| library(&format!("oracle_{fault}"));
    let cases = [
        (variant("crashes"), "signal: 11"),
        (variant("aborts_later"), "while answering unit 7 of 8"),
        (variant("exits"), "its process ended (exit status: 0)"),
        (variant("hangs"), "4s have passed"),
        (variant("spins"), "4s have passed"),
        (variant("fails"), "answer() returned 7 for unit 0"),
        (
            variant("not_a_number"),
            "writes 96 of the 96 elements of 'out' in unit 0 as no finite number",
        ),
        (
            variant("one_infinity"),
            "writes 1 of the 96 elements of 'out'",
        ),
        (
            variant("too_long"),
            "writes out of bounds: past the end of 'out', which has 768 elements",
        ),
        (
            variant("too_early"),
            "writes out of bounds: before the beginning of 'sum'",
        ),
        (variant("changes_inputs"), ""),
        (
            variant("counts_calls"),
            "disagrees with itself: asked twice for unit",
        ),
        (
            broken("half"),
            "leaves 1 of the 1 elements of 'sum' in unit 0 unwritten",
        ),
        (broken("nothing"), "contender_oracle() returned NULL"),
        (broken("no_answer"), "has no function answer()"),
        (broken("other_ops"), "answers tripled, not doubled"),
        (
            broken("short"),
            "set struct_bytes to sizeof(contender_oracle_description)",
        ),
        (
            broken("wrong_version"),
            "was built for version 7 of contender.h",
        ),
        (contender.clone(), "exports no function contender_oracle()"),
    ];
    for (oracle, reason) in cases {
        // Long enough for a busy machine, but where it is waited for.
        let patience = if reason.contains("passed") { "4" } else { "60" };
        let more = ["--contender", &contender, "--timeout-s", patience];
        let run = race(&problem().to_string(), &oracle, &more);
        assert_eq!(
            run.output.status.code(),
            Some(1),
            "{oracle}: {}",
            run.stderr
        );
        let row = run
            .rows
            .first()
            .unwrap_or_else(|| panic!("{oracle}: no row: {}", run.stderr));
        let found = row["reason"].as_str().unwrap_or("");
        assert_eq!(row["status"], "error", "{oracle}: {found}");
        let named = found.starts_with("the oracle: ") && found.contains(reason);
        assert!(named, "{oracle}: '{found}' lacks '{reason}'");
        assert_eq!(row["time"], Value::Null, "{oracle}: nothing is timed");
    }
}

#[test]
fn what_cannot_be_asked_is_wrong_usage() {
    let contender = library("doubled");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let changed = |change: fn(&mut Value)| {
        let mut file = problem();
        change(&mut file);
        file.to_string()
    };
    let cases = [
        (String::new(), "EOF while parsing"),
        (deep, "nested more than"),
        (
            changed(|it| it["colour"] = json!("red")),
            "unknown field `colour`",
        ),
        (
            changed(|it| it["shapes"][0]["rows"] = json!(0)),
            "rows is 0",
        ),
        (
            changed(|it| it["shapes"][0]["rows"] = json!(1u64 << 39)),
            "more than 2^40 elements",
        ),
        (
            changed(|it| it["tensors"][0]["shape"] = json!(["rows / 0"])),
            "divides by zero",
        ),
        (
            changed(|it| it["tensors"][0]["shape"] = json!(["q"])),
            "no whole number 'q'",
        ),
        (
            changed(|it| it["tensors"][1]["name"] = json!("x")),
            "two tensors are called 'x'",
        ),
    ];
    for (text, reason) in cases {
        let run = race(&text, &library("oracle"), &["--contender", &contender]);
        assert_eq!(
            run.output.status.code(),
            Some(2),
            "{reason}: {}",
            run.stderr
        );
        assert!(
            run.stderr.contains(reason),
            "'{}' lacks '{reason}'",
            run.stderr
        );
        assert_eq!(run.stderr.trim().lines().count(), 1, "{}", run.stderr);
    }
    let text = problem().to_string();
    for (oracle, more, reason) in [
        (library("oracle"), vec![], "bring one with --contender"),
        (
            "./nowhere.so".to_owned(),
            vec!["--contender", &contender],
            "cannot read ./nowhere.so",
        ),
        (
            library("oracle"),
            vec!["--contender", &contender, "--dtype", "bf16"],
            "has no type bf16",
        ),
        (
            library("oracle"),
            vec!["--contender", &contender, "--suite", "smoke"],
            "no suite 'smoke'",
        ),
    ] {
        let run = race(&text, &oracle, &more);
        assert_eq!(
            run.output.status.code(),
            Some(2),
            "{reason}: {}",
            run.stderr
        );
        assert!(
            run.stderr.contains(reason),
            "'{}' lacks '{reason}'",
            run.stderr
        );
    }
}
