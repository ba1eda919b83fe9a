//! Recipes: Python programs that turn pinned wheels into objects, reproducibly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Scratch;
use crate::context::Context;
use crate::digest::Digest;
use crate::error::{At, Error, Result};
use crate::lock::{Artifact, Lock, Source};
use crate::process;
use crate::python::Python;
use crate::unpack;

/// Builds a pinned artifact and adds it to the cache. The caller holds the blob's guard.
pub fn build(context: &Context, artifact: &Artifact) -> Result<()> {
    let built = run(context, artifact, &Changes::default())?;
    context
        .cache
        .admit(&built.archive, artifact, &context.cancel)
        .map_err(|error| match error {
            Error::Digest {
                expected, actual, ..
            } => Error::Refused(format!(
            "{name}: its recipe produced sha256 {actual}, the lock says {expected}; if the recipe or \
            its inputs changed on purpose, record it with `artifacts pin {name}`",
            name = artifact.name
        )),
            error => error,
        })
}

/// What a build has that is not the pinned one.
#[derive(Default)]
pub struct Changes<'a> {
    /// A local checkout that takes precedence over the wheels.
    pub checkout: Option<&'a Path>,
    /// Options of the recipe: the sizes to build for, instead of the suites'.
    pub variant: &'a [String],
    /// Another release of its library, which takes the place of the current one; see [`other_release`].
    pub release: Option<&'a str>,
}

/// A new archive, in a folder that is removed with this value.
pub struct Built {
    pub archive: PathBuf,
    pub digest: Digest,
    pub size: u64,
    /// With the unpacked wheels in `site`.
    pub folder: Scratch,
}

/// Runs the recipe in a new folder.
pub fn run(context: &Context, artifact: &Artifact, changes: &Changes) -> Result<Built> {
    let Source::Recipe {
        recipe,
        arch,
        cpu,
        inputs,
    } = &artifact.source
    else {
        return Err(Error::Refused(format!(
            "{} is not built by a recipe",
            artifact.name
        )));
    };
    let inputs = inputs_of(&context.lock, artifact, inputs, changes.release)?;
    let python = Python::find(context.python.as_deref(), |python| covers(python, &inputs))?;
    let wheels: Vec<_> = inputs
        .into_iter()
        .filter(|input| python.imports(&input.file()))
        .collect();
    for fetched in context.fetch_all(&wheels, wheels.len()) {
        fetched?;
    }

    let _one_at_a_time = context.building.lock().unwrap_or_else(|e| e.into_inner());
    let folder = context.cache.scratch()?;
    let bar = context.progress.steps(&artifact.name);
    let site = folder.path().join("site");
    for wheel in &wheels {
        bar.set_message(format!("unpacking {}", wheel.name));
        let blob = context.cache.blob(wheel.sha256);
        unpack::unpack(&blob, &site, unpack::Bounds::default(), &context.cancel)?;
    }
    let script = context.recipes.join(format!("{recipe}.py"));
    let script = fs::canonicalize(&script).at("find the recipe", &script)?;
    let archive = folder.path().join(artifact.file());
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).at("create", &temporary)?;

    let mut command = Command::new(&python.program);
    // Isolated: no site-packages, PYTHON* settings or user folder, and no bytecode left behind.
    command.args(["-I", "-S", "-B"]).arg(script);
    command
        .args(["--arch", arch])
        .arg("--site")
        .arg(&site)
        .arg("--out")
        .arg(&archive);
    if let Some(cpu) = cpu {
        command.args(["--cpu", cpu]);
    }
    if let Some(checkout) = changes.checkout {
        command.arg("--source").arg(checkout);
    }
    command.args(changes.variant);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8");
    command.env("HOME", folder.path()).env("TMPDIR", &temporary);
    let log = folder.path().join("log");
    process::run(&mut command, &log, &context.cancel, || {
        let said = process::last_lines(&log);
        bar.set_message(said.lines().last().unwrap_or_default().to_owned());
        Ok(())
    })?;
    bar.finish_and_clear();
    let (digest, size) = Digest::of_file(&archive, &context.cancel)?;
    Ok(Built {
        archive,
        digest,
        size,
        folder,
    })
}

/// The inputs, with another release of the recipe's library if that is asked for.
fn inputs_of<'a>(
    lock: &'a Lock,
    artifact: &Artifact,
    inputs: &[String],
    release: Option<&str>,
) -> Result<Vec<&'a Artifact>> {
    let other = release.map(|release| other_release(lock, artifact, release));
    let other = other.transpose()?;
    let chosen = inputs.iter().map(|name| match other {
        Some((library, other)) if library.name == *name => Ok(other),
        _ => lock.get(name),
    });
    chosen.collect()
}

/// The library that a recipe builds kernels of, and the other release of it that the lock pins. The library is the one
/// input that has the recipe's own release: 0.6.5 where the recipe is 0.6.5+r2.
pub fn other_release<'a>(
    lock: &'a Lock,
    artifact: &Artifact,
    release: &str,
) -> Result<(&'a Artifact, &'a Artifact)> {
    let name = &artifact.name;
    let version = &artifact.version;
    let own = version.split_once('+').map_or(&**version, |(own, _)| own);
    if release == own {
        return Err(Error::Refused(format!(
            "{own} is the release that {name} is built from anyway; leave out --release"
        )));
    }
    let inputs = match &artifact.source {
        Source::Recipe { inputs, .. } => &inputs[..],
        _ => &[],
    };
    let inputs = inputs.iter().filter_map(|input| lock.get(input).ok());
    let libraries: Vec<&Artifact> = inputs.filter(|input| input.version == own).collect();
    let [library] = libraries[..] else {
        return Err(Error::Refused(format!(
            "{name} comes in one release only; leave out --release"
        )));
    };
    let is_release = |each: &&Artifact| each.name == format!("{}-{}", library.name, each.version);
    let others: Vec<&Artifact> = lock.artifacts.iter().filter(is_release).collect();
    let found = others.iter().find(|other| other.version == release);
    let found = found.map(|other| (library, *other));
    found.ok_or_else(|| {
        let library = &library.name;
        let versions: Vec<&str> = others.iter().map(|other| &*other.version).collect();
        let pinned = match &versions[..] {
            [] => format!("{own} only"),
            others => format!("{own} and {}", others.join(", ")),
        };
        Error::Refused(format!(
            "the lock has no release {release} of {library}, it has {pinned}; `artifacts pin \
             {library}-{release}@{release} --package {library}` adds one"
        ))
    })
}

/// Whether every package among the inputs has a wheel for this interpreter.
fn covers(python: &Python, inputs: &[&Artifact]) -> bool {
    let package = |artifact: &Artifact| match &artifact.source {
        Source::Registry { package, .. } => package.clone(),
        _ => artifact.name.clone(),
    };
    inputs.iter().all(|input| {
        let mut same = inputs
            .iter()
            .filter(|other| package(other) == package(input));
        same.any(|other| python.imports(&other.file()))
    })
}
