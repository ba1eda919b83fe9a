//! The first run on a new card, with the CPU in its place.

use std::path::PathBuf;
use std::process::{Command, Output};

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
