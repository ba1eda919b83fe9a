//! Variants built on demand: recorded with their digests, or nothing at all.

use std::fs;
use std::path::Path;
use std::process::Command;

use artifacts_lib::context::Context;
use artifacts_lib::digest::Digest;
use artifacts_lib::lock::{Artifact, Lock, Source};
use artifacts_lib::mirror::Place;
use artifacts_lib::variant;
use artifacts_testing::{write_wheel, Fixture};
use on_demand::{digest, Missing, Recipe, Store, Variant, Wanted};

/// Writes what Triton's recipes do; it takes no width above 9000.
const RECIPE: &str = r#"
import argparse, zipfile
parser = argparse.ArgumentParser()
for name in ("--arch", "--site", "--out"):
    parser.add_argument(name)
parser.add_argument("--width", type=int, required=True)
options = parser.parse_args()
if options.width > 9000:
    raise SystemExit("the library takes none of the sizes")
with zipfile.ZipFile(options.out, "w") as file:
    file.writestr("kernels.json", "{}")
    file.writestr("kernels.bin", "code for %d" % options.width)
"#;

/// A lock with Liger's recipe at the version of this build, over no wheels.
fn fixture() -> (Fixture, Context) {
    let mut fixture = Fixture::new(b"pinned", &[]);
    fs::write(fixture.folder.path().join("liger.py"), RECIPE).unwrap();
    fixture.artifact.name = "liger-sm_90a".into();
    fixture.artifact.version = Recipe::Liger.version("sm_90a").unwrap().into();
    fixture.artifact.source = Source::Recipe {
        recipe: "liger".into(),
        arch: "sm_90a".into(),
        cpu: None,
        inputs: Vec::new(),
    };
    fixture.write_lock();
    let mut context = fixture.context();
    context.recipes = fixture.folder.path().to_path_buf();
    (fixture, context)
}

fn wanted(width: usize) -> Wanted {
    Wanted::new(Recipe::Liger, "sm_90a", Variant::Width(width))
}

fn store(fixture: &Fixture) -> Store {
    Store::at(fixture.folder.path().join("on-demand"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_variant_is_recorded_found_and_replaced() {
    let (fixture, context) = fixture();
    let store = store(&fixture);
    assert!(matches!(
        store.find(&wanted(5120)),
        Err(Missing::Absent { .. })
    ));
    for _ in 0..2 {
        let (record, folder) = variant::build(&context, &wanted(5120), &store).unwrap();
        assert_eq!(record.files["kernels.bin"], digest(b"code for 5120"));
        let built = store.find(&wanted(5120)).unwrap();
        assert_eq!(built.record, record);
        assert_eq!(built.read("kernels.bin").unwrap(), b"code for 5120");
        assert_eq!(names(&folder).len(), 3);
    }
    let kept = names(&fixture.folder.path().join("on-demand"));
    assert_eq!(kept, ["liger-sm_90a-n5120"], "leftovers");
}

/// The release of Liger in the lock of this build.
fn own_release() -> &'static str {
    let version = Recipe::Liger.version("sm_90a").unwrap();
    version.split_once('+').unwrap().0
}

/// The same over its library and a helper, of both of which the lock has another release; the recipe writes which one
/// of the library it sees.
fn fixture_of_releases() -> (Fixture, Context) {
    let (mut fixture, mut context) = fixture();
    let folder = fixture.folder.path().to_path_buf();
    let import = "options = parser.parse_args()\nimport sys\nsys.path.insert(0, options.site)\nimport library";
    let text = RECIPE.replace("options = parser.parse_args()", import);
    let text = text.replace("\"code for %d\" % options.width", "library.RELEASE");
    fs::write(folder.join("liger.py"), text).unwrap();
    let wheel = |name: &str, package: &str, version: &str| {
        let module = format!("RELEASE = 'release {version}'\n");
        let bytes = fs::read(write_wheel(&folder, package, version, &module)).unwrap();
        Artifact {
            name: name.into(),
            version: version.into(),
            source: Source::Registry {
                registry: "pypi".into(),
                package: package.into(),
                file: format!("{package}-{version}-py3-none-any.whl"),
                member: None,
            },
            sha256: Digest::of(&bytes),
            size: bytes.len() as u64,
            ..fixture.artifact.clone()
        }
    };
    let mut artifacts = vec![
        wheel("helper", "helper", "3.0"),
        wheel("helper-0.2", "helper", "0.2"),
        wheel("library", "library", own_release()),
        wheel("library-0.1", "library", "0.1"),
    ];
    if let Source::Recipe { inputs, .. } = &mut fixture.artifact.source {
        inputs.extend(["helper".into(), "library".into()]);
    }
    artifacts.push(fixture.artifact.clone());
    artifacts.sort_by(|one, other| one.name.cmp(&other.name));
    let lock = Lock {
        schema: 1,
        artifacts,
    };
    lock.write(&fixture.lock_path()).unwrap();
    context.lock = lock;
    context.mirrors = vec![Place::parse(&folder.display().to_string())];
    (fixture, context)
}

#[test]
fn another_release_is_built_from_its_own_wheel_and_kept_apart() {
    let (fixture, context) = fixture_of_releases();
    let store = store(&fixture);
    let code = |release: Option<&str>| {
        let wanted = wanted(5120).of_release(release);
        let (record, _) = variant::build(&context, &wanted, &store).unwrap();
        let built = store.find(&wanted).unwrap();
        let code = String::from_utf8(built.read("kernels.bin").unwrap()).unwrap();
        (code, record)
    };
    let own = format!("release {}", own_release());
    let version = Recipe::Liger.version("sm_90a").unwrap();
    let revision = version.strip_prefix(own_release()).unwrap();
    assert_eq!(code(None).0, own);
    let (older, record) = code(Some("0.1"));
    assert_eq!(older, "release 0.1");
    assert_eq!(record.version, format!("0.1{revision}"));
    assert_eq!(record.name, "liger-0.1-sm_90a-n5120");
    assert_eq!(code(None).0, own);
}

#[test]
fn a_release_that_is_not_pinned_is_answered_with_those_that_are_and_names_nothing() {
    let (fixture, context) = fixture_of_releases();
    let refused = |release: &str| {
        let wanted = wanted(5120).of_release(Some(release));
        let error = variant::build(&context, &wanted, &store(&fixture)).unwrap_err();
        assert_eq!(names(&fixture.folder.path().join("on-demand")), [""; 0]);
        error.to_string()
    };
    let own = own_release();
    // The last one is a release of the helper.
    for release in ["0.3", "../../x", "", "0.2"] {
        let words = format!(
            "the lock has no release {release} of library, it has {own} and 0.1; `artifacts pin \
             library-{release}@{release} --package library` adds one"
        );
        assert_eq!(refused(release), words);
    }
    let words = format!("{own} is the release that liger-sm_90a is built from anyway");
    assert!(refused(own).starts_with(&words), "{}", refused(own));
}

#[test]
fn a_release_is_a_version() {
    let program = std::env::var("ARTIFACTS_PROGRAM").expect("the BUILD file names the program");
    let (fixture, _) = fixture_of_releases();
    let long = "9".repeat(100);
    for release in [
        "", "../x", "0.1/..", "@", "0.1@", "0.1 ", "v0.1", "０.１", "0.1\n", &*long,
    ] {
        let mut command = Command::new(&program);
        command.arg("--lock").arg(fixture.lock_path());
        command.arg("--cache").arg(fixture.cache_path());
        command.env("HEAD_TO_HEAD_CACHE", fixture.folder.path());
        command.args(["build", "liger", "--arch", "sm_90a", "--width", "64"]);
        let output = command
            .arg(format!("--release={release}"))
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{release:?}: {message}");
        assert!(
            message.contains("expected a version like 0.6.4") || release.is_empty(),
            "{message}"
        );
    }
}

#[test]
fn a_failed_build_leaves_what_was_there() {
    let (fixture, context) = fixture();
    let store = store(&fixture);
    variant::build(&context, &wanted(5120), &store).unwrap();
    let message = variant::build(&context, &wanted(9001), &store).unwrap_err();
    let message = message.to_string();
    assert!(message.contains("takes none of the sizes"), "{message}");
    fs::write(
        fixture.folder.path().join("liger.py"),
        "raise SystemExit(1)",
    )
    .unwrap();
    variant::build(&context, &wanted(5120), &store).unwrap_err();
    assert!(store.find(&wanted(5120)).is_ok());
    let kept = names(&fixture.folder.path().join("on-demand"));
    assert_eq!(kept, ["liger-sm_90a-n5120"], "leftovers");
}

#[test]
fn without_python_nothing_is_built() {
    let (fixture, mut context) = fixture();
    context.python = Some("/nowhere/python3".into());
    let message = variant::build(&context, &wanted(5120), &store(&fixture)).unwrap_err();
    assert!(message.to_string().contains("install CPython"), "{message}");
}

#[test]
fn another_version_of_the_recipe_is_not_used() {
    let (mut fixture, _) = fixture();
    fixture.artifact.version = "0.0.1+r1".into();
    fixture.write_lock();
    let mut context = fixture.context();
    context.lock = Lock::read(&fixture.lock_path()).unwrap();
    context.recipes = fixture.folder.path().to_path_buf();
    let store = store(&fixture);
    variant::build(&context, &wanted(5120), &store).unwrap();
    let message = store.find(&wanted(5120)).unwrap_err().to_string();
    assert!(message.contains("recipe 0.0.1+r1 built it"), "{message}");
}

#[test]
fn sizes_that_no_recipe_has_are_refused() {
    let program = std::env::var("ARTIFACTS_PROGRAM").expect("the BUILD file names the program");
    let (fixture, _) = fixture();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--lock").arg(fixture.lock_path());
        command.arg("--cache").arg(fixture.cache_path());
        command.env("HEAD_TO_HEAD_CACHE", fixture.folder.path());
        let output = command.arg("build").args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (arguments, says) in [
        (&["quack", "--heads", "40x8x128"][..], "quack --width N"),
        (&["liger", "--heads", "40x8"], "like 40x8x128"),
        (&["liger", "--width", "0"], "from 1 to 2^20"),
        (&["liger", "--width", "-5"], "unexpected argument"),
        (&["fla-nsa", "--width", "64"], "`fla-nsa` is not built"),
        (&["flash-attention-4", "--head-dim", "128"], "--group"),
        (&["liger", "--release", "0.1"], "also give its sizes"),
        (&["deep-gemm", "--n", "5120"], "--kernel"),
        (
            &["deep-gemm", "--n", "64", "--k", "64", "--kernel", "fp8"],
            "like fp8-dense-128x160-5-2x1",
        ),
        (
            &[
                "quack",
                "--n",
                "64",
                "--k",
                "64",
                "--kernel",
                "fp8-dense-128x160-5-2x1",
            ],
            "quack --width N",
        ),
        (
            &[
                "deep-gemm",
                "--arch",
                "sm_90a",
                "--n",
                "64",
                "--k",
                "96",
                "--kernel",
                "fp8-dense-128x160-5-2x1",
            ],
            "k of 128",
        ),
        (
            &["liger", "--width", "64", "--out", "x"],
            "cannot be used with",
        ),
    ] {
        let message = run(arguments);
        assert!(message.contains(says), "{arguments:?}: {message}");
    }
}
