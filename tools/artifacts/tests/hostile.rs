//! Locks, caches, mirrors and packages from somebody who means harm, and processes that are killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use artifacts_lib::cache::{Access, Cache};
use artifacts_lib::credentials::{Credentials, Settings};
use artifacts_lib::digest::Digest;
use artifacts_lib::fetch::Origin;
use artifacts_lib::lock::{Artifact, Lock, Source};
use artifacts_lib::mirror::Place;
use artifacts_lib::s3::Bucket;
use artifacts_lib::store::Store;
use artifacts_lib::upload::{upload, Licence};
use artifacts_testing::{write_wheel, Fixture, Response, Server};

/// Absolute: some cases run it in another folder.
fn program() -> PathBuf {
    let path = std::env::var("ARTIFACTS_PROGRAM").expect("the BUILD file names the program");
    fs::canonicalize(path).expect("the program exists")
}

fn refusal(change: impl Fn(&mut Artifact)) -> String {
    let mut fixture = Fixture::new(b"x", &["https://example.com/x".into()]);
    change(&mut fixture.artifact);
    fixture.write_lock();
    Lock::read(&fixture.lock_path()).unwrap_err().to_string()
}

fn registry(registry: &str, package: &str) -> Source {
    Source::Registry {
        registry: registry.into(),
        package: package.into(),
        file: "a-1.0-py3-none-any.whl".into(),
        member: None,
    }
}

#[test]
fn a_lock_is_data_that_neither_deletes_nor_runs() {
    for name in [
        "..", ".", "-x", ".git", "a/b", "a..b", "", "A", "a\n", "a b",
    ] {
        assert!(
            refusal(|it| it.name = name.into()).contains("name"),
            "{name}"
        );
    }
    for version in [
        "1\"; import os #",
        "../1",
        "",
        "-1",
        "1 2",
        "1\n2",
        "1/2",
        "$(id)",
    ] {
        assert!(
            refusal(|it| it.version = version.into()).contains("version"),
            "{version}"
        );
    }
    for word in ["../../evil", "a/b", "/etc/x", "-c", "", "a.b", "a b"] {
        for field in 0..3 {
            let told = refusal(|it| {
                let pick =
                    |at: usize, plain: &str| if at == field { word } else { plain }.to_owned();
                it.source = Source::Recipe {
                    recipe: pick(0, "quack"),
                    arch: pick(1, "sm_90a"),
                    cpu: Some(pick(2, "aarch64")),
                    inputs: Vec::new(),
                };
            });
            assert!(told.contains("plain word"), "{word}: {told}");
        }
    }
    for package in [
        "git+https://example.com/x.git",
        "https://example.com/x.tgz",
        "file:../x",
        "../x",
        "--help",
        "a b",
        "a @ https://x",
        "github:a/b",
        "a/b",
        "@a",
        "",
    ] {
        for kind in ["npm", "pypi"] {
            let told = refusal(|it| it.source = registry(kind, package));
            assert!(told.contains("package"), "{kind} {package}: {told}");
        }
    }
    assert!(refusal(|it| {
        it.version = "latest".into();
        it.source = registry("npm", "esbuild");
    })
    .contains("tag"));
    for url in [
        "https://u:p@x/y",
        "ftp://x/y",
        "/etc/passwd",
        "https://x/a b",
        "https://x/\u{1b}",
    ] {
        assert!(
            refusal(|it| it.urls = vec![url.into()]).contains("urls"),
            "{url}"
        );
        let told = refusal(|it| {
            it.source = Source::Http {
                urls: vec![url.into()],
            }
        });
        assert!(told.contains("urls"), "{told}");
    }
    let outside = refusal(|it| {
        it.files.insert("../x".into(), Digest::of(b""));
    });
    assert!(outside.contains("outside"), "{outside}");
}

/// A name that the check missed would still not empty the parent folder.
#[test]
fn unpacking_leaves_the_folder_around_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let wheel = write_wheel(folder.path(), "small_thing", "1.0", "");
    let bytes = fs::read(&wheel).unwrap();
    let fixture = Fixture::new(&bytes, &["https://example.com/x.zip".into()]);
    let mut context = fixture.context();
    fs::write(folder.path().join("x.zip"), &bytes).unwrap();
    context.mirrors = vec![Place::Path(folder.path().into())];
    context.fetch(&fixture.artifact).unwrap();
    let out = folder.path().join("out/inner");
    fs::create_dir_all(&out).unwrap();
    fs::write(folder.path().join("out/precious"), "").unwrap();
    for name in ["..", ".", "", "/", "../inner"] {
        let evil = Artifact {
            name: name.into(),
            ..fixture.artifact.clone()
        };
        context.unpack_out(&evil, &out).unwrap_err();
        assert!(folder.path().join("out/precious").exists(), "{name}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "{name}: leftovers");
    }
    context.unpack_out(&fixture.artifact, &out).unwrap();
    context.unpack_out(&fixture.artifact, &out).unwrap();
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

/// Whichever backend a source package names, its code does not run: not when it is pinned, before
/// anybody has seen its digest, and not when it is fetched.
#[test]
fn a_source_package_runs_nothing() {
    for (case, pyproject) in [
        "",
        "[build-system]\nrequires = []\nbuild-backend = 'evil'\nbackend-path = ['.']\n",
        "[build-system]\nrequires = []\nbuild-backend = 'evil'\n",
        "[build-system]\nrequires = []\nbuild-backend = 'setuptools.build_meta'\n",
    ]
    .into_iter()
    .enumerate()
    {
        let index = tempfile::tempdir().unwrap();
        let folder = index.path().join("small_thing-1.0");
        fs::create_dir(&folder).unwrap();
        let was_run = index.path().join("was_run");
        let evil = format!("open({was_run:?}, 'w')\n");
        for file in [
            "setup.py",
            "evil.py",
            "setuptools.py",
            "sitecustomize.py",
            "os.py",
        ] {
            fs::write(folder.join(file), &evil).unwrap();
        }
        if !pyproject.is_empty() {
            fs::write(folder.join("pyproject.toml"), pyproject).unwrap();
        }
        fs::write(folder.join("PKG-INFO"), "Name: small-thing\nVersion: 1.0\n").unwrap();
        let archive = index.path().join("small_thing-1.0.tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(index.path()).arg("-czf").arg(&archive);
        assert!(tar.arg("small_thing-1.0").status().unwrap().success());
        let fixture = Fixture::new(b"x", &["https://example.com/x".into()]);
        let output = Command::new(program())
            .arg("--lock")
            .arg(fixture.lock_path())
            .arg("--cache")
            .arg(fixture.cache_path())
            .args(["pin", "small-thing@1.0", "--sdist", "--licence", "MIT"])
            .args(["--upstream", "https://example.com"])
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", index.path())
            .current_dir(&folder)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!was_run.exists(), "case {case}: its code ran: {stderr}");
        assert!(output.status.success(), "case {case}: {stderr}");
    }
}

/// A pip.py in the user's folder is not pip.
#[test]
fn pip_is_the_machines_own() {
    let folder = tempfile::tempdir().unwrap();
    let wheel = write_wheel(folder.path(), "small_thing", "1.0", "");
    let here = tempfile::tempdir().unwrap();
    for file in ["pip.py", "runpy.py", "sitecustomize.py", "json.py"] {
        fs::write(here.path().join(file), "open('was_run', 'w')\n").unwrap();
    }
    let mut fixture = Fixture::new(&fs::read(&wheel).unwrap(), &[]);
    fixture.artifact.version = "1.0".into();
    fixture.artifact.source = Source::Registry {
        registry: "pypi".into(),
        package: "small-thing".into(),
        file: "small_thing-1.0-py3-none-any.whl".into(),
        member: None,
    };
    fixture.write_lock();
    let output = Command::new(program())
        .arg("--lock")
        .arg(fixture.lock_path())
        .arg("--cache")
        .arg(fixture.cache_path())
        .args(["fetch", "--all"])
        .env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", folder.path())
        .current_dir(here.path())
        .output()
        .unwrap();
    assert!(!here.path().join("was_run").exists());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn credentials_in_addresses_are_neither_shown_nor_recorded() {
    let server = Server::store();
    let address = server.url("/a").replace("http://", "http://user:hunter2@");
    let content = b"kernels";
    let fixture = Fixture::new(content, &["https://example.com/thing.zip".into()]);
    let mut context = fixture.context();
    fs::write(fixture.folder.path().join("thing.zip"), content).unwrap();
    context.mirrors = vec![Place::Path(fixture.folder.path().into())];
    let store = Store::parse(&address).unwrap();
    let url = upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap();
    assert!(!url.contains("hunter2") && !url.contains("user"), "{url}");
    let lock = fs::read_to_string(fixture.lock_path()).unwrap();
    assert!(lock.contains(&url) && !lock.contains("hunter2"), "{lock}");
    let Err(error) = Store::parse("ftp://user:hunter2@host/x") else {
        panic!("not a store");
    };
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let broken = Server::start(|_, _| Response::status(403));
    let address = broken.url("/a").replace("http://", "http://user:hunter2@");
    let fixture = Fixture::new(content, &["https://example.com/thing.zip".into()]);
    let mut context = fixture.context();
    context.mirrors = vec![Place::parse(&address)];
    context.http.policy.attempts = 1;
    let error = context.fetch(&fixture.artifact).unwrap_err().to_string();
    assert!(
        !error.contains("hunter2") && error.contains("403"),
        "{error}"
    );
}

/// Least privilege without the right to list: S3 answers 403 for a key that is not there.
#[test]
fn a_key_that_is_missing_under_least_privilege_is_uploaded() {
    let server = Server::start(|request, before| match (&request.method[..], before) {
        ("GET", 0) => Response::status(403),
        ("GET", _) => Response::ok(b"kernels"),
        _ => Response::status(200),
    });
    let settings = Settings {
        credentials: Credentials {
            key_id: "id".into(),
            secret: "secret".into(),
            session: None,
        },
        region: "eu-1".into(),
        endpoint: Some(server.url("")),
    };
    let fixture = Fixture::new(b"kernels", &["https://example.com/thing.zip".into()]);
    let mut context = fixture.context();
    fs::write(fixture.folder.path().join("thing.zip"), b"kernels").unwrap();
    context.mirrors = vec![Place::Path(fixture.folder.path().into())];
    let store = Store::S3(Bucket::with("s3://bucket/a", &settings).unwrap());
    upload(&context, &fixture.artifact, &store, Licence::Respected).unwrap();
    let put = server
        .requests()
        .into_iter()
        .find(|it| it.method == "PUT")
        .unwrap();
    assert_eq!(put.header("if-none-match"), Some("*"));
}

#[test]
fn a_mirror_that_cannot_be_read_is_passed_over() {
    let server = Server::start(|request, _| Response::ranged(request, b"kernels"));
    let fixture = Fixture::new(b"kernels", &[server.url("/thing.zip")]);
    let mut context = fixture.context();
    let mirror = fixture.folder.path().join("mirror");
    // Folders, pipes and unreadable files, even for root: a process's memory has a size and no bytes.
    fs::create_dir_all(mirror.join("thing.zip")).unwrap();
    let locked = fixture.folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::write(locked.join("thing.zip"), b"kernels").unwrap();
    fs::set_permissions(locked.join("thing.zip"), fs::Permissions::from_mode(0o0)).unwrap();
    let gone = Place::Path("/proc/self/mem".into());
    context.mirrors = vec![Place::Path(mirror), Place::Path(locked), gone];
    let origin = context.fetch(&fixture.artifact).unwrap();
    assert!(matches!(origin, Origin::Http | Origin::Mirror));
}

/// Same size, other bytes, even the old time: not used.
#[test]
fn a_blob_that_was_changed_is_fetched_again() {
    let content = vec![7; 5000];
    let server = Server::start(move |request, _| Response::ranged(request, &[7; 5000]));
    let fixture = Fixture::new(&content, &[server.url("/thing.zip")]);
    fixture.success();
    let blob = fixture.context().cache.blob(fixture.artifact.sha256);
    let time = fs::metadata(&blob).unwrap().modified().unwrap();
    for plant in [vec![8; 5000], vec![9; 5000]] {
        fs::set_permissions(&blob, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&blob, plant).unwrap();
        let file = fs::File::options().write(true).open(&blob).unwrap();
        file.set_modified(time).unwrap();
        fixture.success();
    }
    // And one that is a link to bytes that somebody else can change.
    let elsewhere = fixture.folder.path().join("elsewhere");
    fs::write(&elsewhere, &content).unwrap();
    fs::remove_file(&blob).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &blob).unwrap();
    fixture.success();
    assert!(fs::symlink_metadata(&blob).unwrap().is_file());
    assert_eq!(server.requests().len(), 4);
    fixture.success();
    assert_eq!(
        server.requests().len(),
        4,
        "what has not changed is not fetched"
    );
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let fixture = Fixture::new(b"x", &["https://example.com/x".into()]);
    drop(fixture.context());
    let mode = fs::metadata(fixture.cache_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    for folder in ["", "blobs", "stamps", "partial", "work"] {
        let path = fixture.cache_path().join(folder);
        for mode in [0o777, 0o770, 0o1777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let Err(error) = Cache::open(&fixture.cache_path(), Access::Shared) else {
                panic!("{folder} with {mode:o} was used");
            };
            assert!(error.to_string().contains("writable by others"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    drop(fixture.context());
}

/// Two containers on one cache have the same process ids.
#[test]
fn scratch_is_nobody_elses_whatever_the_process_id() {
    let fixture = Fixture::new(b"x", &["https://example.com/x".into()]);
    let (ours, theirs) = (fixture.context(), fixture.context());
    let work = fixture.cache_path().join("work");
    let id = std::process::id();
    for number in 0..100 {
        fs::create_dir(work.join(format!("{id}-{number}"))).unwrap();
        fs::write(work.join(format!("{id}-{number}/live")), "").unwrap();
    }
    let (one, other) = (
        ours.cache.scratch().unwrap(),
        theirs.cache.scratch().unwrap(),
    );
    assert_ne!(one.path(), other.path());
    let mode = fs::metadata(one.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    drop((one, other));
    for number in 0..100 {
        assert!(work.join(format!("{id}-{number}/live")).exists());
    }
}

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_run_leaves_no_recipe_behind() {
    let mut fixture = Fixture::new(b"x", &[]);
    let folder = fixture.folder.path().to_path_buf();
    let pid = folder.join("pid");
    let recipe =
        format!("import os, time\nopen({pid:?}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n");
    fs::write(folder.join("slow.py"), recipe).unwrap();
    fixture.artifact.source = Source::Recipe {
        recipe: "slow".into(),
        arch: "sm_90a".into(),
        cpu: None,
        inputs: Vec::new(),
    };
    fixture.write_lock();
    let mut child = Command::new(program())
        .arg("--lock")
        .arg(fixture.lock_path())
        .arg("--cache")
        .arg(fixture.cache_path())
        .arg("--recipes")
        .arg(&folder)
        .args(["fetch", "--all"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    until("the recipe did not start", || !read(&pid).is_empty());
    assert!(runs(&read(&pid)));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the recipe outlived its program", || !runs(&read(&pid)));
}
