//! The program itself: exit codes, JSON, signals, and concurrent runs on one cache.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use artifacts_testing::{Fixture, Response, Server};

const SIZE: usize = 400_000;

fn content() -> Vec<u8> {
    (0..SIZE).map(|i| (i * 17 % 253) as u8).collect()
}

fn program() -> String {
    std::env::var("ARTIFACTS_PROGRAM").expect("the BUILD file names the program")
}

fn command(program: &str, fixture: &Fixture, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--lock")
        .arg(fixture.lock_path())
        .arg("--cache")
        .arg(fixture.cache_path());
    command.args(args).env_remove("HEAD_TO_HEAD_MIRROR");
    command
}

fn run(program: &str, fixture: &Fixture, args: &[&str]) -> Output {
    command(program, fixture, args).output().expect("starts")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).expect("JSON on stdout")
}

fn wait(child: Child) -> Output {
    child.wait_with_output().expect("ends")
}

#[test]
fn fetch_verify_list_gc() {
    let program = program();
    let server = Server::start(|request, _| Response::ranged(request, &content()));
    let fixture = Fixture::new(&content(), &[server.url("/thing.bin")]);

    let missing = run(&program, &fixture, &["--json", "verify"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(json(&missing)["artifacts"][0]["status"], "missing");

    let fetched = run(&program, &fixture, &["--json", "fetch", "--all"]);
    assert_eq!(json(&fetched)["artifacts"][0]["origin"], "http");
    let cached = run(&program, &fixture, &["--json", "fetch", "--all"]);
    assert_eq!(json(&cached)["artifacts"][0]["origin"], "cache");
    assert_eq!(server.requests().len(), 1);
    assert!(run(&program, &fixture, &["verify"]).status.success());
    assert_eq!(
        json(&run(&program, &fixture, &["--json", "list"]))["artifacts"][0]["cached"],
        true
    );

    let out = fixture.folder.path().join("out");
    let copied = run(
        &program,
        &fixture,
        &["fetch", "--all", "--out", &out.display().to_string()],
    );
    assert!(copied.status.success());
    assert_eq!(fs::read(out.join("thing.bin")).unwrap(), content());

    let blob = fixture
        .cache_path()
        .join("blobs")
        .join(fixture.artifact.sha256.to_string());
    damage(&blob);
    let damaged = run(&program, &fixture, &["--json", "verify"]);
    assert_eq!(json(&damaged)["artifacts"][0]["status"], "damaged");
    assert!(!blob.exists());

    let stray = fixture.cache_path().join("blobs").join("0".repeat(64));
    fs::write(&stray, "stray").unwrap();
    assert!(run(&program, &fixture, &["gc", "--dry-run"])
        .status
        .success());
    assert!(stray.exists());
    assert!(run(&program, &fixture, &["gc"]).status.success());
    assert!(!stray.exists());
}

/// Changes a byte but not the size.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[1000] ^= 1;
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn interrupted_and_resumed() {
    let program = program();
    let server = Server::start(|request, before| {
        let mut response = Response::ranged(request, &content());
        // Slow enough to be interrupted, once.
        response.byte_delay = (before == 0).then_some(Duration::from_micros(20));
        response
    });
    let fixture = Fixture::new(&content(), &[server.url("/thing.bin")]);
    let before = fs::read_to_string(fixture.lock_path()).unwrap();
    let mut starting = command(&program, &fixture, &["fetch", "thing"]);
    let child = starting
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let partial = fixture
        .cache_path()
        .join("partial")
        .join(fixture.artifact.sha256.to_string());
    let deadline = Instant::now() + Duration::from_secs(20);
    while fs::metadata(&partial).map_or(0, |file| file.len()) < 1000 {
        assert!(Instant::now() < deadline, "no download began");
        thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = wait(child);
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (blobs, lock) = fixture.state();
    assert!(blobs.is_empty(), "{blobs:?}");
    assert_eq!(lock, before);

    assert!(run(&program, &fixture, &["fetch", "thing"])
        .status
        .success());
    let resumed = server
        .requests()
        .last()
        .and_then(|request| request.range_start());
    assert!(resumed.is_some_and(|start| start >= 1000), "{resumed:?}");
}

#[test]
fn two_programs_at_once() {
    let program = program();
    let delay = Some(Duration::from_millis(300));
    let server = Server::start(move |_, _| Response {
        delay,
        ..Response::ok(&content())
    });
    let fixture = Fixture::new(&content(), &[server.url("/thing.bin")]);
    let start = || {
        let mut starting = command(&program, &fixture, &["fetch", "thing"]);
        starting
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children = [start(), start(), start()];
    for child in children {
        let output = wait(child);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written() {
    let program = program();
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    // A file where the folder should be: even root cannot write there.
    fs::write(fixture.cache_path(), "in the way").unwrap();
    let output = run(&program, &fixture, &["fetch", "thing"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("cannot create the cache folder"),
        "{message}"
    );
}

#[test]
fn a_malformed_lock_is_named() {
    let program = program();
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    fs::write(fixture.lock_path(), "{\n  \"schema\": \"one\"\n}\n").unwrap();
    let output = run(&program, &fixture, &["--json", "list"]);
    assert_eq!(output.status.code(), Some(1));
    let error = json(&output)["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains("lock.json:2:") && error.contains("schema"),
        "{error}"
    );
}

#[test]
fn wrong_usage() {
    let program = program();
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    assert_eq!(
        run(&program, &fixture, &["frobnicate"]).status.code(),
        Some(2)
    );
    let none = run(&program, &fixture, &["fetch"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("--all"));
    let unknown = run(&program, &fixture, &["fetch", "nothing"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no artifact `nothing`"));
}

/// Kernels for sm_100a get them when they run, and rows name such builds.
#[test]
fn products_may_have_any_size() {
    let fixture = Fixture::new(&content(), &["http://127.0.0.1:9/thing.bin".into()]);
    let kernel = "fp8-dense-224x128-6-1x2-transposed";
    let build = |n: &str| {
        let sizes = ["--n", n, "--k", "0", "--kernel", kernel];
        let args = [&["build", "deep-gemm", "--arch", "sm_100a"], &sizes[..]].concat();
        run(&program(), &fixture, &args)
    };
    // A command that makes sense; this lock has none of what it needs.
    assert_eq!(build("0").status.code(), Some(1));
    for size in ["-1", "1048577", "00x"] {
        assert_eq!(build(size).status.code(), Some(2), "{size}");
    }
}
