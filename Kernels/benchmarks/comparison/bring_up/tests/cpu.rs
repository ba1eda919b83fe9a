//! The first run on a new card, with the CPU in its place.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use record::{ContenderKind, Row, Status};
use tempfile::TempDir;

fn program(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names the program");
    std::fs::canonicalize(path).expect("the program exists")
}

fn bring_up(folder: &TempDir, benches: &[&str], more: [&str; 2]) -> Output {
    let mut command = Command::new(program("BRING_UP"));
    command
        .current_dir(folder.path())
        .args(["--device", "cpu", "--gates-only"]);
    for bench in benches {
        command.arg("--bench").arg(program(bench));
    }
    command.arg("--").args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn right_kernels_leave_an_archive() {
    let folder = TempDir::new().unwrap();
    let output = bring_up(&folder, &["NORMS"], ["--op", "softmax_fwd"]);
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(
        log.contains("of our rows are right") && log.contains("send back bring_up.tar.gz"),
        "{log}"
    );
    let listed = Command::new("tar")
        .arg("-tzf")
        .arg(folder.path().join("bring_up.tar.gz"))
        .output();
    let listed = text(&listed.unwrap().stdout);
    assert!(listed.contains("bring_up/bench_norms.json"), "{listed}");
    let again = bring_up(&folder, &["NORMS"], ["--op", "softmax_fwd"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        text(&again.stderr).contains("exists"),
        "an earlier run is not overwritten"
    );
}

/// Its contenders are ours, and most are wrong.
#[test]
fn the_first_wrong_kernel_stops_it() {
    let folder = TempDir::new().unwrap();
    let output = bring_up(
        &folder,
        &["FAULTS", "NORMS"],
        ["--contenders", "honest,wrong_result,baseline"],
    );
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(
        log.contains("is wrong: ") && log.contains("repeat it: "),
        "{log}"
    );
    assert!(!log.contains("gate of bench_norms"), "{log}");
    assert!(folder.path().join("bring_up.tar.gz").exists());
}

/// A program that leaves these rows where `--json` says.
fn stand_in(folder: &Path, rows: Vec<Row>) -> PathBuf {
    let (result, program) = (folder.join("rows.json"), folder.join("stand_in"));
    record::write_json(&result, &report_testing::file("some", rows)).unwrap();
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != --json ]; do shift; done\ncp '{}' \"$2\"\n",
        result.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program
}

/// Gates, then roofs by the same program.
fn with_roofs(folder: &Path, rows: Vec<Row>) -> Output {
    let program = stand_in(folder, rows);
    Command::new(self::program("BRING_UP"))
        .current_dir(folder)
        .arg("--bench")
        .arg(&program)
        .env("BRING_UP_ROOFLINE", program)
        .output()
        .unwrap()
}

#[test]
fn rows_of_an_emulated_device_are_right_and_nothing_is_timed_after_them() {
    let folder = TempDir::new().unwrap();
    let row = |status| report_testing::failed_row("softmax", 3, "ours", status, "as it was");
    let right = vec![row(Status::Emulated)];
    let output = with_roofs(folder.path(), right);
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(
        log.contains("1 of our rows are right")
            && log.contains("no roofs and no suite: the device is emulated"),
        "{log}"
    );
    assert!(!folder.path().join("bring_up/roofs.json").exists());

    let folder = TempDir::new().unwrap();
    let output = with_roofs(folder.path(), vec![row(Status::Wrong)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is wrong: as it was"));
}

#[test]
fn roofs_follow_rows_with_times() {
    let folder = TempDir::new().unwrap();
    let rows = vec![report_testing::row(
        "softmax",
        3,
        "ours",
        ContenderKind::Own,
        vec![1.0; 10],
    )];
    let output = with_roofs(folder.path(), rows);
    let log = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(!log.contains("emulated"), "{log}");
    assert!(folder.path().join("bring_up/roofs.json").exists());
}
