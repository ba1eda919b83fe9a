//! Variants built on demand: recorded with their digests, or nothing at all.

use std::fs;
use std::path::Path;
use std::process::Command;

use artifacts_lib::fetch::Context;
use artifacts_lib::lock::{Lock, Source};
use artifacts_lib::variant;
use artifacts_testing::Fixture;
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
        (
            &["liger", "--width", "64", "--out", "x"],
            "cannot be used with",
        ),
    ] {
        let message = run(arguments);
        assert!(message.contains(says), "{arguments:?}: {message}");
    }
}
