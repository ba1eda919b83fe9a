//! The suite on the CPU, again and again, while any one of its processes is killed at any moment. It is
//! resumed, and then has the rows of an undisturbed run: none is lost, and none is there twice.
//!
//! `CHAOS_ROUNDS` and `CHAOS_SEED` choose how often, and what happens.

use record::{ResultFile, RowKey, Status};
use report_lib::Collection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const ROUNDS: u64 = 5;
const LIMIT: Duration = Duration::from_secs(240);

fn program(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names the program");
    std::fs::canonicalize(path).expect("the program exists")
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

fn suite(folder: &Path, place: &[&str]) -> Command {
    let mut command = Command::new(program("SUITE"));
    command
        .current_dir(folder)
        .env_remove("BUILD_WORKING_DIRECTORY")
        .env_remove("SUITE_BENCHES")
        .arg("--bench")
        .arg(program("BENCH"))
        .args(place);
    if place[0] == "--out" {
        command.args(["--suites", "smoke", "--ops", "rmsnorm_fwd,softmax_fwd"]);
        command.args(["--roofs", "roofs.json", "--", "--device", "cpu"]);
        // What is measured does not matter here, only that it takes its time in small steps.
        command.args(["--iters", "10", "--processes", "2", "--warmup-ms", "1"]);
        command.arg("--skip-verify");
    }
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .unwrap();
    command.stdout(Stdio::null()).stderr(log);
    command
}

/// Keys and how they ended; each row is there once.
fn rows(folder: &Path) -> BTreeMap<RowKey, (Status, Option<String>)> {
    let collection = Collection::read(&folder.join("results.json")).unwrap();
    let files: Vec<&ResultFile> = collection.runs.iter().map(|run| &run.file).collect();
    assert!(files.iter().all(|file| file.meta.complete), "not complete");
    let mut rows = BTreeMap::new();
    for row in files.iter().flat_map(|file| &file.rows) {
        let ended = (row.status, row.reason.clone());
        let twice = rows.insert(RowKey::of(row), ended);
        assert!(twice.is_none(), "{} is there twice", RowKey::of(row));
        if row.status == Status::Ok {
            assert_eq!(row.processes(), 2, "{}", RowKey::of(row));
            assert_eq!(row.samples_us.len(), 20, "{}", RowKey::of(row));
        }
    }
    rows
}

/// A process and everything below it, by /proc.
fn tree(root: u32) -> Vec<u32> {
    let mut parents: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name is in parentheses and may have any character.
        let mut fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        if let Some(parent) = fields.nth(1).and_then(|field| field.parse().ok()) {
            parents.entry(parent).or_default().push(pid);
        }
    }
    let mut tree = vec![root];
    let mut next = 0;
    while next < tree.len() {
        tree.extend(parents.get(&tree[next]).into_iter().flatten());
        next += 1;
    }
    tree
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < LIMIT, "the suite hangs");
        thread::sleep(Duration::from_millis(5));
    }
}

fn next(seed: &mut u64) -> u64 {
    // SplitMix64.
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn place(folder: &Path) -> [&'static str; 2] {
    match folder.join("run/suite.json").exists() {
        true => ["--resume", "run"],
        false => ["--out", "run"],
    }
}

fn prepared() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("roofs.json"), "[]").unwrap();
    folder
}

#[test]
fn whatever_is_killed_no_row_is_lost_and_none_is_there_twice() {
    let rounds = number("CHAOS_ROUNDS").unwrap_or(ROUNDS);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("CHAOS_SEED").unwrap_or(now.as_nanos() as u64);
    let undisturbed = prepared();
    let start = Instant::now();
    let mut child = suite(undisturbed.path(), &["--out", "run"])
        .spawn()
        .unwrap();
    assert!(wait(&mut child).success());
    let length = start.elapsed();
    let expected = rows(&undisturbed.path().join("run"));
    assert!(expected.values().all(|(status, _)| !status.is_failure()));
    let expected: BTreeSet<&RowKey> = expected.keys().collect();

    for round in 0..rounds {
        let mut random = seed.wrapping_add(round);
        let folder = prepared();
        let mut child = suite(folder.path(), &["--out", "run"]).spawn().unwrap();
        let moment = Duration::from_nanos(next(&mut random) % (length.as_nanos() as u64));
        thread::sleep(moment);
        let processes = tree(child.id());
        let victim = processes[next(&mut random) as usize % processes.len()];
        let name = std::fs::read_to_string(format!("/proc/{victim}/comm")).unwrap_or_default();
        let kind = match victim == child.id() {
            true => "the suite itself".to_owned(),
            false => format!("{} of {}", name.trim(), processes.len()),
        };
        let killed = Command::new("kill")
            .args(["-9", &victim.to_string()])
            .output();
        killed.unwrap();
        let first = wait(&mut child);
        let told = format!("round {round} of seed {seed}: killed {kind} after {moment:?}; {first}");
        // Nobody is left behind to disturb what comes next.
        let start = Instant::now();
        while let Some(left) = processes.iter().find(|pid| runs(**pid)) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{told}: {left} still runs"
            );
            thread::sleep(Duration::from_millis(5));
        }
        let mut child = suite(folder.path(), &place(folder.path())).spawn().unwrap();
        let second = wait(&mut child);
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(
            matches!(second.code(), Some(0 | 1)),
            "{told}, {second}: {log}"
        );
        let rows = rows(&folder.path().join("run"));
        assert_eq!(
            rows.keys().collect::<BTreeSet<_>>(),
            expected,
            "{told}: {log}"
        );
        for (key, (status, reason)) in &rows {
            // A worker that is killed is a contender that crashed, as far as anybody can tell.
            let blamed = reason
                .as_deref()
                .is_some_and(|reason| reason.contains("signal: 9"));
            assert!(
                !status.is_failure() || blamed,
                "{told}: {key} {status} {reason:?}"
            );
        }
        workspace::say!("{told}; resumed: {} rows", rows.len());
    }
    workspace::say!("chaos: {rounds} of {rounds} runs came out whole");
}

/// Two suites on one folder: one writes, the other says who does.
#[test]
fn a_folder_has_one_suite_at_a_time() {
    let folder = prepared();
    let run = folder.path().join("run");
    let mut first = suite(folder.path(), &["--out", "run"]).spawn().unwrap();
    let start = Instant::now();
    while !run.join("suite.json").exists() {
        assert!(start.elapsed() < LIMIT && first.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(1));
    }
    // The first stands still, with the lock, for as long as this takes.
    let stopped = Command::new("kill")
        .args(["-STOP", &first.id().to_string()])
        .status();
    assert!(stopped.unwrap().success());
    let second = suite(folder.path(), &["--resume", "run"])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{told}");
    let holder = format!("is being written by process {} on ", first.id());
    assert!(told.contains(&holder), "{told}");
    let going = Command::new("kill")
        .args(["-CONT", &first.id().to_string()])
        .status();
    assert!(going.unwrap().success());
    assert!(wait(&mut first).success());
    assert!(!rows(&run).is_empty());
}

/// A bench that prints what it likes, and a suite that nobody listens to.
#[test]
fn results_survive_any_bytes_and_any_closed_pipe() {
    use std::os::unix::fs::PermissionsExt;
    let folder = prepared();
    let noisy = folder.path().join("bench_noisy");
    let script = format!(
        "#!/bin/sh\nprintf 'caf\\351 \\377\\376\\033[2J\\n' >&2\nexec '{}' \"$@\"\n",
        program("BENCH").display()
    );
    std::fs::write(&noisy, script).unwrap();
    std::fs::set_permissions(&noisy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = |out: &str| {
        let mut command = Command::new(program("SUITE"));
        command
            .current_dir(folder.path())
            .env_remove("BUILD_WORKING_DIRECTORY")
            .env_remove("SUITE_BENCHES")
            .arg("--bench")
            .arg(&noisy)
            .args(["--out", out, "--suites", "smoke", "--ops", "rmsnorm_fwd"])
            .args([
                "--roofs",
                "roofs.json",
                "--",
                "--device",
                "cpu",
                "--iters",
                "10",
            ]);
        command
    };
    let output = command("heard").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("caf") && !output.stderr.contains(&0x1b),
        "{stderr}"
    );
    let log = std::fs::read(folder.path().join("heard/bench_norms.log")).unwrap();
    assert!(
        log.windows(4).any(|bytes| bytes == b"caf\xe9"),
        "the log has the bytes"
    );
    let mut child = command("unheard")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(wait(&mut child).code(), Some(0));
    let file = record::read_json(&folder.path().join("unheard/bench_norms.json")).unwrap();
    assert!(file.meta.complete && !file.rows.is_empty());
}
