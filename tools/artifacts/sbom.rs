//! Everything that a build fetches, as a CycloneDX 1.6 bill of materials: the lock's artifacts, the
//! crates, and what runs the build: Bazel, its packages, its Java, and Rust.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{json, Value};

use crate::error::{At, Error, Result};
use crate::lock::{Artifact, Lock, Source};

const CRATES: &str = "third_party/crates/Cargo.lock";
const PACKAGES: &str = "bazel/bootstrap/packages.lock.json";
const RELEASES: &str = "bazel/bootstrap/official.sha256";

/// Reproducible: no serial number and no date, which are optional. `root` is the checkout of the lock.
pub fn document(lock: &Lock, root: &Path) -> Result<Value> {
    let mut components: Vec<Value> = lock.artifacts.iter().map(component).collect();
    let tools = [
        crates(root)?,
        packages(root)?,
        releases(root)?,
        vec![rust()],
    ]
    .concat();
    let refs: Vec<Value> = tools.iter().map(|tool| tool["bom-ref"].clone()).collect();
    components.extend(tools);
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "name": "head-to-head", "bom-ref": "root" },
        },
        "components": components,
        "dependencies": dependencies(lock, refs),
    }))
}

fn read(root: &Path, name: &str) -> Result<String> {
    let path = root.join(name);
    fs::read_to_string(&path).at("read", &path)
}

fn tool(kind: &str, purl: String, name: &str, version: &str, sha256: Option<&str>) -> Value {
    let mut tool = json!({
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    });
    if let Some(sha256) = sha256 {
        tool["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
    }
    tool
}

/// The crates of Cargo's lock; its own package has no checksum.
fn crates(root: &Path) -> Result<Vec<Value>> {
    let text = read(root, CRATES)?;
    let packages = text.split("[[package]]").skip(1).filter_map(|package| {
        let field = |name: &str| {
            let mut lines = package.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
            value.strip_suffix('"')
        };
        let (name, version) = (field("name")?, field("version")?);
        let purl = format!("pkg:cargo/{name}@{version}");
        Some(tool(
            "library",
            purl,
            name,
            version,
            Some(field("checksum")?),
        ))
    });
    Ok(packages.collect())
}

/// The Debian packages of Bazel, and the wheels beside them: one is a Java.
fn packages(root: &Path) -> Result<Vec<Value>> {
    #[derive(Deserialize)]
    struct Packages {
        debs: Vec<File>,
        wheels: Vec<File>,
    }
    #[derive(Deserialize)]
    struct File {
        path: String,
        sha256: String,
    }
    let text = read(root, PACKAGES)?;
    let lock: Packages = serde_json::from_str(&text)
        .map_err(|error| Error::Refused(format!("{PACKAGES}: {error}")))?;
    let parts = |file: &File, separator: char| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let mut parts = name.split(separator).map(str::to_owned);
        Some((parts.next()?, parts.next()?))
    };
    let debs = lock.debs.iter().filter_map(|deb| {
        let (name, version) = parts(deb, '_')?;
        let purl = format!("pkg:deb/debian/{name}@{}", version.replace('+', "%2B"));
        Some(tool(
            "application",
            purl,
            &name,
            &version,
            Some(&deb.sha256),
        ))
    });
    let wheels = lock.wheels.iter().filter_map(|wheel| {
        let (name, version) = parts(wheel, '-')?;
        let purl = format!("pkg:pypi/{name}@{version}");
        Some(tool(
            "application",
            purl,
            &name,
            &version,
            Some(&wheel.sha256),
        ))
    });
    Ok(debs.chain(wheels).collect())
}

/// The official Bazel, which brings its own Java.
fn releases(root: &Path) -> Result<Vec<Value>> {
    let text = read(root, RELEASES)?;
    let releases = text.lines().filter_map(|line| {
        let (sha256, file) = line.split_once("  ")?;
        let (_, rest) = file.split_once('-')?;
        let (version, platform) = rest.split_once('-')?;
        let purl = format!("pkg:generic/bazel@{version}?platform={platform}");
        Some(tool("application", purl, "bazel", version, Some(sha256)))
    });
    Ok(releases.collect())
}

/// The machine's own; bazel/toolchains refuses an older one.
fn rust() -> Value {
    let purl = "pkg:generic/rust".to_owned();
    tool(
        "application",
        purl,
        "rust",
        "1.89 or newer, the machine's own",
        None,
    )
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

fn dependencies(lock: &Lock, tools: Vec<Value>) -> Vec<Value> {
    let artifacts = lock.artifacts.iter().map(|artifact| json!(artifact.name));
    let all: Vec<Value> = artifacts.chain(tools).collect();
    let mut dependencies = vec![json!({ "ref": "root", "dependsOn": all })];
    for artifact in &lock.artifacts {
        if let Source::Recipe { inputs, .. } = &artifact.source {
            dependencies.push(json!({ "ref": artifact.name, "dependsOn": inputs }));
        }
    }
    dependencies
}
