//! The suite on the CPU: a whole run, a killed one that is resumed, two shards.

use report_lib::Collection;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn program(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names the program");
    std::fs::canonicalize(path).expect("the program exists")
}

/// Small enough for a test: one operation, few rounds.
const BENCH_OPTIONS: [&str; 5] = ["--", "--device", "cpu", "--iters", "10"];
const CHOICE: [&str; 4] = ["--suites", "smoke", "--ops", "rmsnorm_fwd,softmax_fwd"];

fn suite(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program("SUITE"));
    command
        .current_dir(folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .env_remove("SUITE_BENCHES")
        .arg("--bench")
        .arg(program("BENCH"))
        .args(arguments);
    command
}

fn whole(folder: &Path, out: &str, more: &[&str]) -> Output {
    let arguments = [&CHOICE[..], &["--out", out], more, &BENCH_OPTIONS].concat();
    suite(folder, &arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn keys(path: &Path) -> Vec<record::RowKey> {
    let collection = Collection::read(path).unwrap();
    let rows = collection.runs.iter().flat_map(|run| &run.file.rows);
    rows.map(record::RowKey::of).collect()
}

fn key_set(path: &Path) -> BTreeSet<record::RowKey> {
    let keys = keys(path);
    let set: BTreeSet<_> = keys.iter().cloned().collect();
    assert_eq!(set.len(), keys.len(), "a row appears twice");
    set
}

#[test]
fn a_killed_run_is_completed_and_shards_are_one_run() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let output = whole(folder.path(), "whole", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for name in [
        "bench_norms.json",
        "results.json",
        "summary.md",
        "rows.csv",
        "report.html",
    ] {
        assert!(at("whole").join(name).exists(), "no {name}");
    }
    assert!(
        text(&output.stderr).contains(" left] "),
        "running out of time is reported"
    );
    assert!(text(&output.stdout).contains("# Head-to-Head results"));
    let expected = key_set(&at("whole/results.json"));

    killed_and_resumed(folder.path(), &expected);

    for shard in ["1/2", "2/2"] {
        let out = format!("shard{}", &shard[..1]);
        let output = whole(folder.path(), &out, &["--shard", shard]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let (first, second) = (
        key_set(&at("shard1/results.json")),
        key_set(&at("shard2/results.json")),
    );
    assert!(first.is_disjoint(&second));
    assert_eq!(
        first.union(&second).cloned().collect::<BTreeSet<_>>(),
        expected
    );
}

/// Kills the suite once its first rows are on disk, then resumes it.
fn killed_and_resumed(folder: &Path, expected: &BTreeSet<record::RowKey>) {
    std::fs::write(folder.join("roofs.json"), "[]").unwrap();
    let with = |place: [&'static str; 2]| {
        [
            &CHOICE[..],
            &["--roofs", "roofs.json"],
            &place,
            &BENCH_OPTIONS,
        ]
        .concat()
    };
    let arguments = with(["--out", "killed"]);
    let mut child = suite(folder, &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let partial = folder.join("killed/bench_norms.json");
    let start = Instant::now();
    while !partial.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no row came");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let resumed = suite(folder, &["--resume", "killed"]).output().unwrap();
    let stderr = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("workloads are already measured") || stderr.contains("complete"),
        "{stderr}"
    );
    assert_eq!(&key_set(&folder.join("killed/results.json")), expected);
    // As a cluster restarts it: with the original options, and not with others.
    let again = suite(folder, &with(["--resume", "killed"]))
        .output()
        .unwrap();
    assert!(text(&again.stderr).contains("bench_norms: complete"));
    let others = ["--resume", "killed", "--ops", "layernorm_fwd"];
    let other = suite(folder, &others).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("uses the original options"));
}

#[test]
fn an_emulated_device_has_no_roofs() {
    let folder = TempDir::new().unwrap();
    let script = |name: &str, lines: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let bench = program("BENCH");
    let emulated = format!(
        "case \"$*\" in\n*--list-json*) '{0}' \"$@\" | sed 's/\"emulated\": false/\"emulated\": true/' ;;\n\
         *) exec '{0}' \"$@\" ;;\nesac",
        bench.display()
    );
    let bench = script("bench_norms", &emulated);
    let roofline = script("bench_roofline", "echo nothing is timed >&2; exit 1");
    let output = Command::new(program("SUITE"))
        .current_dir(folder.path())
        .env_remove("BUILD_WORKING_DIRECTORY")
        .env_remove("SUITE_BENCHES")
        .args([
            "--bench".as_ref(),
            bench.as_path(),
            "--bench".as_ref(),
            roofline.as_path(),
        ])
        .args([
            "--suites",
            "smoke",
            "--ops",
            "rmsnorm_fwd",
            "--out",
            "emulated",
        ])
        .args(BENCH_OPTIONS)
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("no roofs: the device is emulated"),
        "{stderr}"
    );
    assert!(folder.path().join("emulated/results.json").exists());
}

/// A busy CPU may call the same contender different: the suite then says so and fails.
#[test]
fn a_named_protocol_is_judged_by_its_controls() {
    let folder = TempDir::new().unwrap();
    let choice = [
        "--suites",
        "smoke",
        "--ops",
        "rmsnorm_fwd",
        "--quick",
        "--out",
        "quick",
    ];
    let all = [&choice[..], &["--", "--device", "cpu"]].concat();
    let output = suite(folder.path(), &all).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let file = record::read_json(&folder.path().join("quick/bench_norms.json")).unwrap();
    assert_eq!(file.meta.protocol.preset.as_deref(), Some("quick"));
    let controls: Vec<_> = record::controls(&file).collect();
    assert_eq!(controls.len(), 1, "one workload of the operation");
    let verdict = controls[0].speedup.as_ref().unwrap().verdict;
    let different = matches!(verdict, stats::Verdict::Faster | stats::Verdict::Slower);
    assert_eq!(output.status.code(), Some(i32::from(different)), "{stderr}");
    assert_eq!(
        stderr.contains("do not publish this run"),
        different,
        "{stderr}"
    );
    let trust = stdout.lines().nth(4).unwrap();
    let count = usize::from(verdict == stats::Verdict::Same);
    assert!(
        trust.contains(&format!("A/A controls: {count} of 1 the same")),
        "{stdout}"
    );
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_to_use() {
    let folder = TempDir::new().unwrap();
    for (arguments, remedy) in [
        (&["--suites", "nowhere"][..], "choose from"),
        (
            &["--ops", "gemm_of_dreams", "--suites", "smoke"],
            "choose from cross_entropy_bwd",
        ),
        (
            &["--resume", "no_such_folder"],
            "is not the state of a suite",
        ),
        (&["--shard", "3/2", "--suites", "smoke"], "expected I/N"),
        (
            &["--quick", "--suites", "smoke", "--", "--iters", "10"],
            "cannot be used with",
        ),
    ] {
        let separator: &[&str] = match arguments.contains(&"--") {
            true => &[],
            false => &["--"],
        };
        let all = [arguments, separator, &["--device", "cpu"]].concat();
        let output = suite(folder.path(), &all).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(remedy), "{arguments:?}: {stderr}");
    }
}
