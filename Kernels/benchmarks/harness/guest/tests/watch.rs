//! `--watch`: a race after every change, one line each, and a clean end.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

fn file(variable: &str) -> PathBuf {
    let path = std::env::var(variable).expect("the BUILD file names it");
    std::fs::canonicalize(path).expect("it exists")
}

struct Watcher {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watcher {
    fn start(folder: &Path, scratch: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(file("FAULT_BENCH"))
            .current_dir(folder)
            .env_remove("BUILD_WORKING_DIRECTORY")
            .env("TMPDIR", scratch)
            .args(["--device", "cpu", "--configs", "64x96", "--dtype", "f32"])
            .args(["--contenders", "honest,baseline", "--iters", "5", "--watch"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let line = self.lines.next().expect("it is still there");
        line.expect("it is text")
    }

    /// Its exit code, and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.child.try_wait().expect("it is ours").is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut said = String::new();
        let stderr = self.child.stderr.take().expect("a pipe");
        BufReader::new(stderr)
            .read_to_string(&mut said)
            .expect("text");
        (self.child.wait().expect("it is ours").code(), said)
    }
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().expect("a folder").next().is_none()
}

#[test]
fn every_change_is_raced_and_the_end_is_clean() {
    let (folder, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let library = folder.path().join("libmine.so");
    std::fs::copy(file("ZOO"), &library).unwrap();
    let options = ["--contender", "mine=./libmine.so?well"];
    let mut watcher = Watcher::start(folder.path(), scratch.path(), &options);
    let first = watcher.line();
    for part in [
        "scaled f32 smoke/64x96  mine  was -  is ",
        " us  best other ",
        " us baseline  ",
    ] {
        assert!(first.contains(part), "'{first}' lacks '{part}'");
    }
    // Longer by a byte that the loader does not read.
    let mut bytes = std::fs::read(&library).unwrap();
    bytes.push(0);
    std::fs::write(folder.path().join("new"), &bytes).unwrap();
    std::fs::rename(folder.path().join("new"), &library).unwrap();
    let second = watcher.line();
    assert!(
        second.contains(" us  is ") && second.contains("x as fast)"),
        "{second}"
    );
    // One that is broken is said to be, and the next one is raced again.
    std::fs::write(&library, "not a library").unwrap();
    let third = watcher.line();
    assert!(third.contains("is error: cannot be loaded"), "{third}");
    let (code, said) = watcher.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(is_empty(scratch.path()), "something is left");
}

#[test]
fn a_build_comes_first_and_what_it_writes_is_no_edit() {
    let (folder, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let source = folder.path().join("source");
    std::fs::write(&source, "1").unwrap();
    let build = format!("test -s source && cp {} libmine.so", file("ZOO").display());
    let options = ["--contender", "mine=./libmine.so?well", "--build", &build];
    let mut watcher = Watcher::start(folder.path(), scratch.path(), &options);
    assert!(watcher.line().contains("was -"));
    std::fs::write(&source, "22").unwrap();
    let second = watcher.line();
    assert!(second.contains("x as fast)"), "{second}");
    // A build that fails races nothing; the next one does.
    std::fs::write(&source, "").unwrap();
    std::thread::sleep(Duration::from_secs(2));
    std::fs::write(&source, "333").unwrap();
    assert!(watcher.line().contains("x as fast)"));
    let (code, said) = watcher.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("--build failed").count(), 1, "{said}");
}

#[test]
fn what_is_wrong_from_the_start_ends_it() {
    let (folder, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for (options, reason) in [
        (&[][..], "--watch has nothing to watch"),
        (&["--contender", "./libmine.so"], "cannot read ./libmine.so"),
    ] {
        let mut watcher = Watcher::start(folder.path(), scratch.path(), options);
        assert!(watcher.lines.next().is_none());
        let code = watcher.child.wait().unwrap().code();
        let mut said = String::new();
        let stderr = watcher.child.stderr.take().unwrap();
        BufReader::new(stderr).read_to_string(&mut said).unwrap();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    assert!(is_empty(scratch.path()));
}
