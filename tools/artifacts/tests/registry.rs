//! Packages through the machine's own pip, from a folder instead of an index.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use artifacts_lib::digest::Digest;
use artifacts_lib::lock::{Artifact, Lock, Source};
use artifacts_testing::{write_wheel, write_wheel_for, Fixture};

fn program() -> String {
    std::env::var("ARTIFACTS_PROGRAM").expect("the BUILD file names the program")
}

/// A fixture whose artifact is a file of a package.
fn fixture(file: &Path) -> Fixture {
    let mut fixture = Fixture::new(&fs::read(file).unwrap(), &[]);
    fixture.artifact.name = "small-thing".into();
    fixture.artifact.version = "1.0".into();
    fixture.artifact.source = Source::Registry {
        registry: "pypi".into(),
        package: "small-thing".into(),
        file: file.file_name().unwrap().to_string_lossy().into_owned(),
        member: None,
    };
    fixture.write_lock();
    fixture
}

fn run(program: &str, fixture: &Fixture, index: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.arg("--lock").arg(fixture.lock_path());
    command.arg("--cache").arg(fixture.cache_path()).args(args);
    command
        .env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", index);
    command.env_remove("HEAD_TO_HEAD_MIRROR");
    command.output().expect("starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_wheel() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    let wheel = write_wheel(index.path(), "small_thing", "1.0", "");
    let fixture = fixture(&wheel);
    let output = run(&program, &fixture, index.path(), &["fetch", "--all"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let work = fixture.cache_path().join("work");
    assert_eq!(fs::read_dir(work).unwrap().count(), 0, "leftovers");

    let changed = run(&program, &fixture, index.path(), &["verify"]);
    assert!(changed.status.success());
}

#[test]
fn a_wheel_that_is_not_the_locks() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    let wheel = write_wheel(index.path(), "small_thing", "1.0", "");
    let fixture = fixture(&wheel);
    write_wheel(index.path(), "small_thing", "1.0", "import evil");
    let output = run(&program, &fixture, index.path(), &["fetch", "--all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).to_lowercase().contains("hash"),
        "{}",
        stderr(&output)
    );
    assert!(fixture.state().0.is_empty());
}

#[test]
fn a_source_package_is_not_run() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    let folder = index.path().join("small_thing-1.0");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("setup.py"), "raise SystemExit('was run')").unwrap();
    fs::write(folder.join("PKG-INFO"), "Name: small-thing\nVersion: 1.0\n").unwrap();
    let archive = index.path().join("small_thing-1.0.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(index.path()).arg("-czf").arg(&archive);
    assert!(tar.arg("small_thing-1.0").status().unwrap().success());
    let fixture = fixture(&archive);
    let output = run(&program, &fixture, index.path(), &["fetch", "--all"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn pin_records_the_newest_or_the_one_that_was_named() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    let old = write_wheel(index.path(), "small_thing", "1.0", "");
    let new = write_wheel(index.path(), "small_thing", "2.0", "x = 1");
    let fixture = fixture(&old);
    for (name, version, file) in [
        ("small-thing", "2.0", &new),
        ("small-thing@1.0", "1.0", &old),
    ] {
        let output = run(&program, &fixture, index.path(), &["pin", name]);
        assert!(output.status.success(), "{}", stderr(&output));
        let pinned = Lock::read(&fixture.lock_path()).unwrap().artifacts[0].clone();
        assert_eq!(pinned.version, version);
        assert_eq!(pinned.sha256, Digest::of(&fs::read(file).unwrap()));
    }
    let before = fixture.state();
    let output = run(&program, &fixture, index.path(), &["pin", "other-thing"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fixture.state(), before);
}

#[test]
fn pin_of_another_release_has_the_facts_of_its_package() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    write_wheel(index.path(), "small_thing", "1.0", "");
    let new = write_wheel(index.path(), "small_thing", "2.0", "x = 1");
    let fixture = fixture(&new);
    let pin = ["pin", "small-thing-1.0@1.0", "--package", "small-thing"];
    let output = run(&program, &fixture, index.path(), &pin);
    assert!(output.status.success(), "{}", stderr(&output));
    let lock = Lock::read(&fixture.lock_path()).unwrap();
    let [current, older] = &lock.artifacts[..] else {
        panic!("{:?}", lock.artifacts);
    };
    assert_eq!((&*older.name, &*older.version), ("small-thing-1.0", "1.0"));
    assert_eq!(
        (&*current.name, &*current.version),
        ("small-thing", &*fixture.artifact.version)
    );
    let facts = |it: &Artifact| (it.licence.clone(), it.upstream.clone(), it.redistributable);
    assert_eq!(facts(older), facts(current));
}

#[test]
fn pin_records_digests_of_members_and_keeps_recording_them() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    let old = write_wheel(index.path(), "small_thing", "1.0", "x = 1");
    write_wheel(index.path(), "small_thing", "2.0", "x = 2");
    let fixture = fixture(&old);
    let first = ["pin", "small-thing@1.0", "--file", "small_thing.py"];
    for (arguments, module) in [(&first[..], "x = 1"), (&["pin", "small-thing"], "x = 2")] {
        let output = run(&program, &fixture, index.path(), arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let pinned = Lock::read(&fixture.lock_path()).unwrap().artifacts[0].clone();
        let digest = Digest::of(module.as_bytes());
        assert_eq!(pinned.files, [("small_thing.py".into(), digest)].into());
    }
    let before = fixture.state();
    let absent = ["pin", "small-thing", "--file", "absent.so"];
    let output = run(&program, &fixture, index.path(), &absent);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("absent.so"), "{}", stderr(&output));
    assert_eq!(fixture.state(), before);
}

#[test]
fn pin_for_another_cpu_takes_its_wheel_of_the_same_version() {
    let program = program();
    let index = tempfile::tempdir().unwrap();
    let write = |platform, version| {
        write_wheel_for(platform, index.path(), "small_thing", version, platform)
    };
    let fixture = fixture(&write("manylinux2014_x86_64", "1.0"));
    let before = fixture.state();
    let pin = ["pin", "small-thing-aarch64"];
    let output = run(&program, &fixture, index.path(), &pin);
    assert_eq!(output.status.code(), Some(1), "there is no such wheel yet");
    assert_eq!(fixture.state(), before);

    let wanted = write("manylinux_2_28_aarch64", "1.0");
    write("manylinux_2_28_aarch64", "2.0");
    let output = run(&program, &fixture, index.path(), &pin);
    assert!(output.status.success(), "{}", stderr(&output));
    let lock = Lock::read(&fixture.lock_path()).unwrap();
    let [first, second] = &lock.artifacts[..] else {
        panic!("{lock:?}")
    };
    assert_eq!((&first.name[..], &second.name[..]), ("small-thing", pin[1]));
    assert_eq!(
        (&second.version, &second.licence),
        (&first.version, &first.licence)
    );
    assert_eq!(second.sha256, Digest::of(&fs::read(wanted).unwrap()));

    // By pip on this machine, whatever CPU it has.
    let output = run(&program, &fixture, index.path(), &["fetch", pin[1]]);
    assert!(output.status.success(), "{}", stderr(&output));
}
