//! Records an artifact in the lock: a package version, a file at a URL, or a recipe's result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::context::Context;
use crate::digest::{Digest, Hasher};
use crate::error::{At, Error, Result};
use crate::lock::{Artifact, Source};
use crate::pip;
use crate::python::Python;
use crate::recipe;
use crate::upload::change_lock;

/// Name suffix of artifacts for another CPU.
const CPUS: [&str; 1] = ["aarch64"];

/// The user's options besides the name.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub version: Option<String>,
    /// Registry package, if it is not named like the artifact.
    pub package: Option<String>,
    pub licence: Option<String>,
    pub upstream: Option<String>,
    pub redistributable: Option<bool>,
    /// A source package, not a wheel.
    pub sdist: bool,
    /// Members of the wheel whose digests to record, replacing the recorded ones.
    pub files: Vec<String>,
}

pub fn pin(context: &Context, name: &str, facts: &Facts) -> Result<Artifact> {
    let find = |name: &str| {
        let mut all = context.lock.artifacts.iter();
        all.find(|artifact| artifact.name == name)
    };
    // Facts and version come from the x86-64 artifact: both belong to one release.
    let other = other_cpu(name).and_then(|(twin, cpu)| Some((find(twin)?, cpu)));
    // Another release of a package that is in the lock has its facts, too.
    let is_package = |artifact: &&Artifact| matches!(artifact.source, Source::Registry { .. });
    let package = facts.package.as_deref().and_then(find).filter(is_package);
    let known = find(name).or(other.map(|(twin, _)| twin)).or(package);
    let cpu = other.map(|(_, cpu)| cpu);
    let facts = &Facts {
        version: facts
            .version
            .clone()
            .or_else(|| other.map(|(twin, _)| twin.version.clone())),
        ..facts.clone()
    };
    let pinned = match known.map(|artifact| (artifact, &artifact.source)) {
        Some((known, Source::Recipe { .. })) => pin_recipe(context, name, known, cpu, facts)?,
        Some((_, Source::Http { .. })) => {
            return Err(Error::Refused(format!(
                "{name} is a plain URL: change its url, sha256 and size in the lock, then run \
                `artifacts fetch {name}`, which checks them"
            )));
        }
        Some((_, Source::Registry { .. })) | None => {
            pin_package(context, name, known, cpu.unwrap_or(pip::DEFAULT_CPU), facts)?
        }
    };
    change_lock(&context.cache, &context.lock_path, |lock| {
        lock.put(pinned.clone());
        Ok(())
    })?;
    Ok(pinned)
}

/// The x86-64 name and the CPU of an artifact for another CPU.
fn other_cpu(name: &str) -> Option<(&str, &'static str)> {
    CPUS.into_iter()
        .find_map(|cpu| Some((name.strip_suffix(cpu)?.strip_suffix('-')?, cpu)))
}

fn pin_recipe(
    context: &Context,
    name: &str,
    known: &Artifact,
    for_cpu: Option<&str>,
    facts: &Facts,
) -> Result<Artifact> {
    let mut pinned = known.clone();
    pinned.name = name.to_owned();
    if let Source::Recipe { cpu, .. } = &mut pinned.source {
        *cpu = for_cpu.map(str::to_owned);
    }
    let built = recipe::run(context, &pinned, &recipe::Changes::default())?;
    if (built.digest, built.size) != (pinned.sha256, pinned.size) {
        pinned.urls.clear();
    }
    (pinned.sha256, pinned.size) = (built.digest, built.size);
    if let Some(version) = &facts.version {
        pinned.version = version.clone();
    }
    context
        .cache
        .admit(&built.archive, &pinned, &context.cancel)?;
    Ok(pinned)
}

fn pin_package(
    context: &Context,
    name: &str,
    known: Option<&Artifact>,
    cpu: &str,
    facts: &Facts,
) -> Result<Artifact> {
    let (package, kind) = match known.map(|artifact| &artifact.source) {
        Some(Source::Registry { package, file, .. }) => (package.clone(), pip::Kind::of(file)),
        _ if facts.sdist => (name.to_owned(), pip::Kind::Sdist),
        _ => (name.to_owned(), pip::Kind::any_wheel(pip::ANY_PYTHON, cpu)),
    };
    // A new version may be built for different platforms.
    let kind = match kind {
        pip::Kind::Wheel { python, .. } => pip::Kind::any_wheel(&python, cpu),
        kind => kind,
    };
    let package = facts.package.clone().unwrap_or(package);
    let python = Python::find(context.python.as_deref(), |_| true)?;
    let scratch = context.cache.scratch()?;
    let bar = context.progress.steps(name);
    let version = facts.version.as_deref();
    let wanted = pip::Wanted {
        package: &package,
        version,
        kind,
        digest: None,
        size: None,
    };
    let path = pip::download(&python, &wanted, scratch.path(), &bar, &context.cancel)?;
    bar.finish_and_clear();

    let file = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let (sha256, size) = Digest::of_file(&path, &context.cancel)?;
    let metadata = metadata(&path);
    let missing =
        |what: &str| Error::Refused(format!("{name}: its metadata has no {what}; use --{what}"));
    let stated = |given: &Option<String>, old: Option<&String>, field: &str| {
        given
            .clone()
            .or_else(|| old.cloned())
            .or_else(|| entry(&metadata, field))
    };
    let licence = stated(
        &facts.licence,
        known.map(|k| &k.licence),
        "License-Expression",
    );
    let upstream = stated(&facts.upstream, known.map(|k| &k.upstream), "Home-page");
    let redistributable = facts.redistributable.or(known.map(|k| k.redistributable));
    let before = known.map_or(Vec::new(), |k| k.files.keys().cloned().collect());
    let members = if facts.files.is_empty() {
        &before
    } else {
        &facts.files
    };
    let pinned = Artifact {
        name: name.to_owned(),
        version: version_of(&file)
            .ok_or_else(|| Error::Refused(format!("{file}: its name has no version")))?,
        source: Source::Registry {
            registry: "pypi".into(),
            package,
            file,
            member: None,
        },
        sha256,
        size,
        licence: licence.ok_or_else(|| missing("licence"))?,
        // Not unless somebody says so.
        redistributable: redistributable.unwrap_or(false),
        upstream: upstream.ok_or_else(|| missing("upstream"))?,
        urls: Vec::new(),
        files: digests(&path, members)?,
    };
    context.cache.admit(&path, &pinned, &context.cancel)?;
    Ok(pinned)
}

/// `name-VERSION-tags.whl` or `name-VERSION.tar.gz`.
fn version_of(file: &str) -> Option<String> {
    let stem = file
        .strip_suffix(".whl")
        .or_else(|| file.strip_suffix(".tar.gz"))?;
    stem.split('-').nth(1).map(str::to_owned)
}

/// The wheel's METADATA; nothing for other files.
fn metadata(wheel: &Path) -> String {
    let read = || -> Option<String> {
        let mut zip = zip::ZipArchive::new(std::fs::File::open(wheel).ok()?).ok()?;
        let name = zip
            .file_names()
            .find(|name| name.ends_with(".dist-info/METADATA"))?
            .to_owned();
        let mut bytes = Vec::new();
        zip.by_name(&name)
            .ok()?
            .take(1 << 20)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

/// Digests of these members of the wheel.
fn digests(wheel: &Path, members: &[String]) -> Result<BTreeMap<String, Digest>> {
    if members.is_empty() {
        return Ok(BTreeMap::new());
    }
    let refused = |what: &str, error: zip::result::ZipError| {
        Error::Refused(format!("{}: {what}: {error}", wheel.display()))
    };
    let file = File::open(wheel).at("open", wheel)?;
    let mut zip = zip::ZipArchive::new(file).map_err(|error| refused("not a wheel", error))?;
    let mut found = BTreeMap::new();
    for name in members {
        let member = zip.by_name(name);
        let mut member = member.map_err(|error| refused(&format!("member `{name}`"), error))?;
        let mut hasher = Hasher::default();
        io::copy(&mut member, &mut hasher).at("read", wheel)?;
        found.insert(name.clone(), hasher.finish());
    }
    Ok(found)
}

fn entry(metadata: &str, field: &str) -> Option<String> {
    let head = metadata.split("\n\n").next()?;
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_names() {
        let version = |file: &str| version_of(file).unwrap();
        assert_eq!(version("quack_kernels-0.6.5-py3-none-any.whl"), "0.6.5");
        assert_eq!(version("flash_attn-2.8.3.tar.gz"), "2.8.3");
        assert_eq!(version_of("thing.zip"), None);
    }

    #[test]
    fn other_cpus_from_names() {
        assert_eq!(other_cpu("zizmor-aarch64"), Some(("zizmor", "aarch64")));
        assert_eq!(other_cpu("zizmor"), None);
        assert_eq!(other_cpu("aarch64"), None);
    }

    #[test]
    fn metadata_fields() {
        let text = "Name: a\nLicense-Expression: MIT\nHome-page:\n\nLicense-Expression: no";
        assert_eq!(entry(text, "License-Expression").as_deref(), Some("MIT"));
        assert_eq!(entry(text, "Home-page"), None);
    }
}
