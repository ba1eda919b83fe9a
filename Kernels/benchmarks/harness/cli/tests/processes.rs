//! Whole runs in several processes, and contenders that race against themselves.

use std::path::Path;
use std::process::{Command, Output};

use record::{ContenderKind, ResultFile};
use tempfile::TempDir;

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let program = std::env::var("FAULT_BENCH").expect("FAULT_BENCH names the program");
    let output = Command::new(std::fs::canonicalize(program).expect("the program exists"))
        .current_dir(folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .args(["--device", "cpu", "--json", "run.json"])
        .args(arguments)
        .output();
    output.expect("the program starts")
}

fn read(folder: &Path) -> ResultFile {
    record::read_json(&folder.join("run.json")).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const THREE: [&str; 6] = [
    "--contenders",
    "honest,baseline",
    "--iters",
    "10",
    "--processes",
    "3",
];

#[test]
fn rows_hold_the_rounds_of_every_process() {
    let folder = TempDir::new().unwrap();
    let output = bench(folder.path(), &THREE);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("(process 3 of 3)"));
    let file = read(folder.path());
    assert_eq!((file.meta.protocol.processes, file.rows.len()), (3, 2));
    for row in &file.rows {
        assert_eq!(row.rounds_per_process, [10, 10, 10]);
        assert_eq!(row.time.as_ref().unwrap().count, 30);
    }
    let best = file.rows[0].against_best.as_ref().unwrap();
    assert_eq!(
        (&*best.speedup.baseline, best.speedup.pairs),
        ("baseline", 30)
    );
    assert!(file.rows[0].repro.contains("--processes 3"));
}

#[test]
fn a_run_cut_between_processes_is_completed() {
    let folder = TempDir::new().unwrap();
    let configs = ["--configs", "8x8,16x16"];
    let cut = [&THREE[..], &configs, &["--max-minutes", "0.00001"]].concat();
    let output = bench(folder.path(), &cut);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let part = read(folder.path());
    assert!(!part.meta.complete);
    let processes = |file: &ResultFile| file.rows.iter().map(|row| row.processes()).sum::<usize>();
    assert!(processes(&part) < 12);

    let whole = [&THREE[..], &configs, &["--resume", "run.json"]].concat();
    let output = bench(folder.path(), &whole);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = read(folder.path());
    assert!(file.meta.complete);
    assert_eq!((file.rows.len(), processes(&file)), (4, 12));
    for (before, after) in part.rows.iter().zip(&file.rows) {
        let kept = &after.samples_us[..before.samples_us.len()];
        assert_eq!(kept, &before.samples_us[..]);
    }
}

#[test]
fn a_contender_races_against_itself_by_name_or_by_protocol() {
    let folder = TempDir::new().unwrap();
    let named = ["--contenders", "honest,baseline,honest (again)"];
    let protocol = ["--protocol", "published"];
    let output = bench(folder.path(), &[&named[..], &protocol].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = read(folder.path());
    assert_eq!(file.meta.protocol.preset.as_deref(), Some("published"));
    let control = record::controls(&file).next().unwrap();
    assert_eq!(control.contender.name, "honest (again)");
    assert_eq!(control.contender.kind, ContenderKind::Control);
    assert_eq!(control.processes(), 3);
    assert_eq!(control.speedup.as_ref().unwrap().baseline, "honest");
    assert!(
        control.repro.contains("'honest (again),honest'"),
        "{}",
        control.repro
    );
    // Three contenders: whole periods of six rounds in every process.
    let rounds = &file.rows[0].rounds_per_process;
    assert!(
        rounds.iter().all(|rounds| rounds % 6 == 0 && *rounds >= 12),
        "{rounds:?}"
    );

    let listed = bench(folder.path(), &["--protocol", "quick", "--dry-run"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("honest (again)"));
    let plain = bench(folder.path(), &["--dry-run"]);
    assert!(!String::from_utf8_lossy(&plain.stdout).contains("honest (again)"));
}
