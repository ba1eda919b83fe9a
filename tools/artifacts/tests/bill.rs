//! The bill of materials: complete, and valid by CycloneDX's own schema.

use std::path::{Path, PathBuf};

use artifacts_lib::lock::Lock;
use artifacts_lib::sbom;
use boon::{Compiler, Schemas};
use serde_json::Value;

/// The repository's lock, or a small one.
fn lock() -> Lock {
    if let Some(path) = std::env::var_os("ARTIFACTS_LOCK") {
        return Lock::read(Path::new(&path)).unwrap();
    }
    let artifact =
        artifacts_testing::Fixture::new(b"x", &["https://example.com/x".into()]).artifact;
    Lock {
        schema: 1,
        artifacts: vec![artifact],
    }
}

#[test]
fn every_artifact_is_listed() {
    let lock = lock();
    let document = sbom::document(&lock);
    let components = document["components"].as_array().unwrap();
    assert_eq!(components.len(), lock.artifacts.len());
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
    let document = sbom::document(&lock());
    if let Err(error) = schemas.validate(&document, index) {
        panic!("{error:#}");
    }
}
