//! The lock as a CycloneDX 1.6 bill of materials.

use serde_json::{json, Value};

use crate::lock::{Artifact, Lock, Source};

/// Reproducible: no serial number and no date, which are optional.
pub fn document(lock: &Lock) -> Value {
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "name": "head-to-head", "bom-ref": "root" },
        },
        "components": lock.artifacts.iter().map(component).collect::<Vec<_>>(),
        "dependencies": dependencies(lock),
    })
}

fn component(artifact: &Artifact) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": artifact.name,
        "name": artifact.name,
        "version": artifact.version,
        "hashes": [{ "alg": "SHA-256", "content": artifact.sha256 }],
        "licenses": [licence(&artifact.licence)],
        "externalReferences": [{ "type": "website", "url": artifact.upstream }],
        "properties": [
            { "name": "head-to-head:file", "value": artifact.file() },
            { "name": "head-to-head:size", "value": artifact.size.to_string() },
            {
                "name": "head-to-head:redistributable",
                "value": artifact.redistributable.to_string(),
            },
        ],
    });
    if let Source::Registry {
        registry, package, ..
    } = &artifact.source
    {
        component["purl"] = format!("pkg:{registry}/{package}@{}", artifact.version).into();
    }
    component
}

/// An SPDX id, an expression of several, or a name unknown to SPDX.
fn licence(text: &str) -> Value {
    if text.contains(' ') {
        return json!({ "expression": text });
    }
    let field = if text.starts_with("LicenseRef-") {
        "name"
    } else {
        "id"
    };
    json!({ "license": { field: text } })
}

fn dependencies(lock: &Lock) -> Vec<Value> {
    let all: Vec<_> = lock
        .artifacts
        .iter()
        .map(|artifact| &artifact.name)
        .collect();
    let mut dependencies = vec![json!({ "ref": "root", "dependsOn": all })];
    for artifact in &lock.artifacts {
        if let Source::Recipe { inputs, .. } = &artifact.source {
            dependencies.push(json!({ "ref": artifact.name, "dependsOn": inputs }));
        }
    }
    dependencies
}
