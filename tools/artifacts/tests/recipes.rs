//! Recipes: the same bytes in two folders, or an error.

use std::fs;
use std::path::Path;

use artifacts_lib::context::Context;
use artifacts_lib::digest::Digest;
use artifacts_lib::error::Result;
use artifacts_lib::fetch::Origin;
use artifacts_lib::lock::{Artifact, Lock, Source};
use artifacts_lib::mirror::Place;
use artifacts_lib::verify::{verify, Finding};
use artifacts_testing::{write_wheel, Fixture};

const STEADY: &str = r#"
import argparse, sys
parser = argparse.ArgumentParser()
for name in ("--arch", "--site", "--out", "--source"):
    parser.add_argument(name)
options = parser.parse_args()
sys.path.insert(0, options.site)
import small_thing
assert "/site-packages" not in ":".join(sys.path), sys.path
with open(options.out, "w") as file:
    file.write(options.arch + small_thing.TEXT)
"#;
const UNSTEADY: &str = "import sys, time\nout = sys.argv[sys.argv.index('--out') + 1]\n\
                        open(out, 'w').write('%022d' % time.time_ns())\n";
const BROKEN: &str = "raise SystemExit('no such kernel')";
const RESULT: &[u8] = b"sm_90a and a wheel....";

/// A recipe `thing` over one wheel, and a lock that expects RESULT.
fn fixture(recipe: &str) -> (Fixture, Context) {
    let mut fixture = Fixture::new(RESULT, &[]);
    let folder = fixture.folder.path();
    fs::write(folder.join("thing.py"), recipe).unwrap();
    let wheel = write_wheel(folder, "small_thing", "1.0", "TEXT = ' and a wheel....'\n");
    let bytes = fs::read(&wheel).unwrap();
    let input = Artifact {
        name: "small-thing".into(),
        source: Source::Registry {
            registry: "pypi".into(),
            package: "small-thing".into(),
            file: "small_thing-1.0-py3-none-any.whl".into(),
            member: None,
        },
        sha256: Digest::of(&bytes),
        size: bytes.len() as u64,
        ..fixture.artifact.clone()
    };
    fixture.artifact.source = Source::Recipe {
        recipe: "thing".into(),
        arch: "sm_90a".into(),
        cpu: None,
        inputs: vec![input.name.clone()],
    };
    let lock = Lock {
        schema: 1,
        artifacts: vec![input, fixture.artifact.clone()],
    };
    lock.write(&fixture.lock_path()).unwrap();
    let mut context = fixture.context();
    context.mirrors = vec![Place::parse(&fixture.folder.path().display().to_string())];
    context.recipes = fixture.folder.path().to_path_buf();
    (fixture, context)
}

fn fetch(context: &Context) -> Result<Origin> {
    context.fetch(context.lock.get("thing")?)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn built_on_the_spot_and_again() {
    let (fixture, context) = fixture(STEADY);
    assert_eq!(fetch(&context).unwrap(), Origin::Recipe);
    let blob = fs::read(context.cache.blob(fixture.artifact.sha256)).unwrap();
    assert_eq!(blob, RESULT);
    let finding = verify(&context, &fixture.artifact, true).unwrap();
    assert_eq!(finding, Finding::Rebuilt);
    assert!(is_empty(&fixture.cache_path().join("work")), "leftovers");
}

#[test]
fn other_bytes_are_refused() {
    let (fixture, context) = fixture(UNSTEADY);
    let message = fetch(&context).unwrap_err().to_string();
    assert!(message.contains("artifacts pin thing"), "{message}");
    assert!(!context.cache.has(&fixture.artifact));
}

#[test]
fn verify_finds_a_recipe_that_changed() {
    let (fixture, context) = fixture(STEADY);
    fetch(&context).unwrap();
    fs::write(fixture.folder.path().join("thing.py"), UNSTEADY).unwrap();
    let finding = verify(&context, &fixture.artifact, true).unwrap();
    assert!(matches!(finding, Finding::Different { .. }), "{finding:?}");
}

#[test]
fn a_failing_recipe_has_the_last_word() {
    let (fixture, context) = fixture(BROKEN);
    let message = fetch(&context).unwrap_err().to_string();
    assert!(message.contains("no such kernel"), "{message}");
    assert!(is_empty(&fixture.cache_path().join("work")), "leftovers");
}
