//! A bench that is killed, and one that nobody listens to.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

fn bench(arguments: &[&str]) -> Command {
    let path = std::env::var("FAULT_BENCH").expect("FAULT_BENCH names the program");
    let mut command = Command::new(std::fs::canonicalize(path).expect("the program exists"));
    command
        .args(["--device", "cpu", "--iters", "10"])
        .args(["--contenders", "honest,baseline"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Processes that this one has started, from all its threads.
fn children(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    let lists = tasks.into_iter().flatten().flatten().filter_map(read);
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn a_killed_bench_leaves_no_worker_and_is_resumed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.json");
    let json = path.to_str().unwrap();
    let configs: Vec<String> = (1..60).map(|size| format!("{size}x{size}")).collect();
    let configs = configs.join(",");
    let mut child = bench(&["--configs", &configs, "--json", json])
        .spawn()
        .unwrap();
    until("no row came", || path.exists());
    let workers = children(child.id());
    assert!(!workers.is_empty(), "a worker measures");
    child.kill().unwrap();
    child.wait().unwrap();
    until("a worker outlived its bench", || {
        !workers.iter().any(|pid| runs(pid))
    });

    let part = record::read_json(&path).unwrap();
    assert!(!part.meta.complete, "it was not killed in time");
    let whole = bench(&["--configs", &configs, "--json", json, "--resume", json]).status();
    assert_eq!(whole.unwrap().code(), Some(0));
    let whole = record::read_json(&path).unwrap();
    assert!(whole.meta.complete);
    assert_eq!(whole.rows.len(), 2 * 59);
    for row in &part.rows {
        let again = whole
            .rows
            .iter()
            .find(|it| record::RowKey::of(it) == record::RowKey::of(row));
        assert_eq!(again.unwrap().samples_us, row.samples_us, "measured again");
    }
}

#[test]
fn results_survive_closed_pipes() {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("run.json");
    let mut child = bench(&["--configs", "8x8,16x16", "--json", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let file = record::read_json(&path).unwrap();
    assert!(file.meta.complete);
    assert_eq!(file.rows.len(), 4);
    assert!(file.rows.iter().all(|row| row.status == record::Status::Ok));
}
