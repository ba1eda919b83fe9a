//! A kernel without host code on an operation that the user brings, with its oracle in a process of its own.

mod variables;

use std::fs;
use std::process::Command;

use serde_json::{json, Value};
use tempfile::TempDir;
use variables::{file, read, variable};

/// Races the example, changed, and returns its exit code and its row.
fn race(change: impl FnOnce(&mut Value)) -> (Option<i32>, Value, String) {
    let folder = TempDir::new().expect("a folder");
    let mut description: Value =
        serde_json::from_str(&read("KERNEL", ".json")).expect("it is JSON");
    change(&mut description);
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text);
    write("kernel.json", description.to_string()).expect("written");
    write("l2norm.ptx", read("KERNEL", ".ptx")).expect("written");
    let output = Command::new(file(&variable("BENCH_OWN")))
        .current_dir(folder.path())
        .env_remove("BUILD_WORKING_DIRECTORY")
        .args(["--device", "ptx", "--dtype", "bf16", "--configs", "3x320"])
        .arg("--problem")
        .arg(file(&variable("PROBLEM")))
        .arg("--oracle")
        .arg(file(&variable("ORACLE")))
        .args(["--contender", "mine=./kernel.json", "--json", "run.json"])
        .output()
        .expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(folder.path().join("run.json")).unwrap_or_default();
    let result: Value = serde_json::from_str(&text).unwrap_or_default();
    (output.status.code(), result["rows"][0].clone(), stderr)
}

#[test]
fn the_example_passes_the_gate_of_its_own_oracle() {
    let (code, row, stderr) = race(|_| {});
    assert_eq!(code, Some(0), "{} {stderr}", row["reason"]);
    assert_eq!(row["status"], "emulated", "{}", row["reason"]);
    assert_eq!(
        (&row["op"], &row["verified"]),
        (&json!("l2norm"), &json!(true))
    );
    assert_eq!(row["facts"]["launch"]["grid"], json!([3, 1, 1]));
    assert_eq!(
        row["also_right_on"],
        json!(["outliers", "large", "uneven_rows"])
    );
}

#[test]
fn a_wrong_number_is_seen_by_it() {
    let (code, row, stderr) = race(|it| it["arguments"][3] = json!({"value": [100, "f32"]}));
    assert_eq!(
        (code, &row["status"]),
        (Some(1), &json!("wrong")),
        "{stderr}"
    );
    let reason = row["reason"].as_str().unwrap_or("");
    assert!(reason.contains("the oracle says"), "{reason}");
}
