//! A kernel without host code in whole runs of a bench: right, wrong in each way that a description can be, and
//! never at the cost of another row.

mod variables;

use std::fs;
use std::process::{Command, Output};

use serde_json::{json, Value};
use tempfile::TempDir;
use variables::{file, read, variable};

/// A folder with the example in it, changed.
fn example(change: impl FnOnce(&mut Value, &mut String)) -> TempDir {
    changed("EXAMPLE", change)
}

/// The same of the example that a variable names.
fn changed(example: &str, change: impl FnOnce(&mut Value, &mut String)) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut description: Value = serde_json::from_str(&read(example, ".json")).expect("it is JSON");
    let mut ptx = read(example, ".ptx");
    change(&mut description, &mut ptx);
    fs::write(folder.path().join("kernel.json"), description.to_string()).expect("written");
    fs::write(folder.path().join("rmsnorm.ptx"), ptx).expect("written");
    folder
}

fn race(folder: &TempDir, more: &[&str]) -> (Output, Value) {
    let output = Command::new(file(&variable("BENCH")))
        .current_dir(folder.path())
        .env_remove("BUILD_WORKING_DIRECTORY")
        .args(["--device", "ptx", "--contender", "mine=./kernel.json"])
        .args(["--json", "run.json"])
        .args(more)
        .output()
        .expect("it starts");
    let text = fs::read_to_string(folder.path().join("run.json")).unwrap_or_default();
    let result: Value = serde_json::from_str(&text).unwrap_or_default();
    (output, result)
}

/// The row of a contender.
fn row(result: &Value, name: &str) -> Value {
    let rows = result["rows"].as_array().cloned().unwrap_or_default();
    let found = rows
        .into_iter()
        .find(|row| row["contender"]["name"] == name);
    found.unwrap_or_else(|| panic!("no row for {name}"))
}

#[test]
fn the_example_passes_the_gate() {
    let folder = example(|_, _| {});
    let (output, result) = race(&folder, &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let mine = row(&result, "mine");
    assert_eq!(
        (&mine["status"], &mine["verified"]),
        (&json!("emulated"), &json!(true))
    );
    assert_eq!(mine["facts"]["launch"]["grid"], json!([3, 1, 1]));
    assert_eq!(mine["facts"]["launch"]["entry"], "rmsnorm");
    assert!(mine["facts"]["isolation"][0]
        .as_str()
        .is_some_and(|it| it.contains("no code on the host")));
    assert_eq!(
        mine["contender"]["artifact_sha256"].as_str().map(str::len),
        Some(64)
    );
    assert!(mine["repro"]
        .as_str()
        .is_some_and(|it| it.contains("--contender mine=./kernel.json")));
}

#[test]
fn what_others_export_passes_the_gate() {
    for (variable, threads) in [("TRITON", 128), ("CUTE", 256)] {
        let folder = changed(variable, |_, _| {});
        let (output, result) = race(&folder, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mine = row(&result, "mine");
        assert_eq!(mine["status"], "emulated", "{}: {stderr}", mine["reason"]);
        assert_eq!(mine["facts"]["launch"]["block"], json!([threads, 1, 1]));
        // It reads another constant than the one that the problem has.
        let wrong = changed(variable, |it, _| {
            it["arguments"][4] = json!({"value": [9, "f32"]})
        });
        let (output, result) = race(&wrong, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(row(&result, "mine")["status"], "wrong");
    }
}

#[test]
fn each_mistake_costs_its_own_row_and_is_named() {
    type Change = fn(&mut Value, &mut String);
    let cases: [(Change, &str, &str); 11] = [
        (
            |it, _| it["entry"] = json!("layernorm"),
            "error",
            "layernorm",
        ),
        (
            |it, _| drop(it["arguments"].as_array_mut().map(Vec::pop)),
            "error",
            "'rmsnorm' takes 5 parameters, and arguments has 4",
        ),
        (
            |it, _| it["arguments"][3] = json!({"axis": ["columns", "i32"]}),
            "error",
            "parameter 3 of 'rmsnorm' has 8 bytes, and its argument has 4",
        ),
        (
            |it, _| it["arguments"][0] = json!({"tensor": "q"}),
            "error",
            "there is no tensor 'q'; rmsnorm_fwd has x",
        ),
        (
            |it, _| it["arguments"][4] = json!({"value": [100, "f32"]}),
            "wrong",
            "the oracle says",
        ),
        (
            |it, _| it["grid"] = json!(["rows - 1"]),
            "wrong",
            "unwritten",
        ),
        (|it, _| it["grid"] = json!(["rows * 4096"]), "error", ""),
        (
            |it, _| it["grid"] = json!(["rows / (columns - 320)"]),
            "error",
            "divides by zero",
        ),
        (
            |it, _| it["shared_bytes"] = json!("columns * 4096"),
            "error",
            "shared_bytes is 1310720",
        ),
        (
            |it, _| it["dtypes"] = json!(["f32"]),
            "unsupported",
            "takes f32, not bf16",
        ),
        (|_, ptx| ptx.push_str("\n.garbage"), "error", ""),
    ];
    for (change, status, reason) in cases {
        let folder = example(change);
        let (output, result) = race(&folder, &[]);
        let (mine, ours) = (row(&result, "mine"), row(&result, "ours"));
        let found = mine["reason"].as_str().unwrap_or("");
        assert_eq!(mine["status"], status, "{reason}: {found}");
        assert!(found.contains(reason), "'{found}' lacks '{reason}'");
        assert_eq!(ours["status"], "emulated", "{}", ours["reason"]);
        assert_eq!(
            output.status.code(),
            Some(i32::from(status != "unsupported"))
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_wrong_usage() {
    type Change = fn(&mut Value, &mut String);
    let cases: [(Change, &str); 4] = [
        (
            |it, _| it["code"] = json!("../rmsnorm.ptx"),
            "expected a file beside this one",
        ),
        (|it, _| it["code"] = json!("other.ptx"), "cannot read"),
        (|it, _| it["threads"] = json!(1), "unknown field `threads`"),
        (
            |_, ptx| *ptx = "int main() {}".into(),
            "neither PTX nor a cubin",
        ),
    ];
    for (change, reason) in cases {
        let (output, _) = race(&example(change), &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(reason), "'{stderr}' lacks '{reason}'");
    }
    let folder = example(|_, _| {});
    let (output, _) = race(&folder, &["--contender", "other=./kernel.json?tile=2"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("takes no text after ?"), "{stderr}");
}
