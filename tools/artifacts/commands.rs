//! The commands: each calls the library for the user's arguments and reports rows.

use std::path::Path;

use clap::ValueEnum;
use serde_json::json;

use artifacts_lib::context::Context;
use artifacts_lib::error::At;
use artifacts_lib::lock::{Artifact, Lock, Source};
use artifacts_lib::upload::Licence;
use artifacts_lib::verify::Finding;
use artifacts_lib::{gc, pin, recipe, sbom, store, upload, variant, verify, Error, Result};
use on_demand::{Store, Variant, Wanted};

use crate::cli;
use crate::Report;

fn chosen<'a>(lock: &'a Lock, names: &[String], all: bool) -> Result<Vec<&'a Artifact>> {
    if all {
        return Ok(lock.artifacts.iter().collect());
    }
    if names.is_empty() {
        return Err(Error::Refused(
            "name artifacts (see `artifacts list`) or use --all".into(),
        ));
    }
    names.iter().map(|name| lock.get(name)).collect()
}

pub fn list(context: &Context, report: &mut Report) {
    for artifact in &context.lock.artifacts {
        let cached = context.cache.has(artifact);
        let mut row = serde_json::to_value(artifact).unwrap_or_default();
        row["cached"] = cached.into();
        let line = format!(
            "{:38} {:14} {:>11} {:7} {}{}",
            artifact.name,
            artifact.version,
            artifact.size,
            if cached { "cached" } else { "-" },
            artifact.licence,
            if artifact.redistributable {
                ""
            } else {
                " (not redistributable)"
            },
        );
        report.row(row, &line);
    }
}

pub fn fetch(context: &Context, args: &cli::Fetch, report: &mut Report) -> Result<()> {
    let artifacts = chosen(&context.lock, &args.names, args.all)?;
    let results = context.fetch_all(&artifacts, args.jobs);
    for (artifact, result) in artifacts.into_iter().zip(results) {
        match result {
            Ok(origin) => {
                let name = &artifact.name;
                report.row(
                    json!({ "name": name, "status": "ok", "origin": origin }),
                    &format!("{name}: {}", json!(origin).as_str().unwrap_or_default()),
                );
                write_outputs(context, artifact, &args.outputs)?;
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => report.failure(&artifact.name, &error),
        }
    }
    Ok(())
}

fn write_outputs(context: &Context, artifact: &Artifact, outputs: &cli::Outputs) -> Result<()> {
    if let Some(folder) = &outputs.out {
        context.copy_out(artifact, folder)?;
    }
    if let Some(folder) = &outputs.unpack {
        context.unpack_out(artifact, folder)?;
    }
    Ok(())
}

pub fn pin(context: &Context, args: cli::Pin, report: &mut Report) -> Result<()> {
    let (name, version) = match args.name.split_once('@') {
        Some((name, version)) => (name, Some(version.to_owned())),
        None => (&args.name[..], None),
    };
    let facts = pin::Facts {
        version,
        package: args.package,
        licence: args.licence,
        upstream: args.upstream,
        redistributable: args.redistributable,
        sdist: args.sdist,
        files: args.file,
    };
    let pinned = pin::pin(context, name, &facts)?;
    let line = format!(
        "{name}: {} {} ({})",
        pinned.version, pinned.sha256, pinned.licence
    );
    report.row(serde_json::to_value(&pinned).unwrap_or_default(), &line);
    Ok(())
}

pub fn build(context: &Context, args: &cli::Build, report: &mut Report) -> Result<()> {
    if let Some(variant) = args.variant()? {
        return build_variant(context, args, variant, report);
    }
    if args.release.is_some() {
        let message = "--release builds a variant: also give its sizes, like --width 4096";
        return Err(Error::Refused(message.into()));
    }
    for artifact in recipes_named(&context.lock, args)? {
        let name = &artifact.name;
        let Some(checkout) = &args.source else {
            let _guard = context.cache.guard(&artifact.sha256.to_string())?;
            recipe::build(context, artifact)?;
            write_outputs(context, artifact, &args.outputs)?;
            let row = json!({ "name": name, "status": "ok", "sha256": artifact.sha256 });
            report.row(row, &format!("{name}: built, matches the lock"));
            continue;
        };
        let changes = recipe::Changes {
            checkout: Some(checkout),
            ..Default::default()
        };
        let built = recipe::run(context, artifact, &changes)?;
        if let Some(folder) = &args.outputs.out {
            std::fs::create_dir_all(folder).at("create", folder)?;
            let path = folder.join(artifact.key());
            std::fs::copy(&built.archive, &path).at("copy to", &path)?;
        }
        let row = json!({ "name": name, "status": "local", "sha256": built.digest });
        report.row(
            row,
            &format!(
                "{name}: built from {}: {}",
                checkout.display(),
                built.digest
            ),
        );
    }
    Ok(())
}

/// Builds what benches then find in the user's cache, for every arch asked for.
fn build_variant(
    context: &Context,
    args: &cli::Build,
    variant: Variant,
    report: &mut Report,
) -> Result<()> {
    for name in &args.names {
        let recipe = variant::recipe_for(name, &variant)?;
        let archs = match args.arch.is_empty() {
            true => {
                let mut all = names_of(cli::Arch::value_variants());
                all.retain(|arch| recipe.version(arch).is_some());
                all
            }
            false => names_of(&args.arch),
        };
        for arch in &archs {
            let wanted = Wanted::new(recipe, arch, variant).of_release(args.release.as_deref());
            let (record, folder) = variant::build(context, &wanted, &Store::of_user())?;
            let row = json!({ "name": wanted.to_string(), "status": "ok", "sha256": record.archive_sha256,
                "folder": folder });
            let version = &record.version;
            report.row(
                row,
                &format!("{wanted}: recipe {version} in {}", folder.display()),
            );
        }
    }
    Ok(())
}

fn names_of(archs: &[cli::Arch]) -> Vec<String> {
    let name = |arch: &cli::Arch| Some(arch.to_possible_value()?.get_name().to_owned());
    archs.iter().filter_map(name).collect()
}

fn recipes_named<'a>(lock: &'a Lock, args: &cli::Build) -> Result<Vec<&'a Artifact>> {
    let wanted = names_of(&args.arch);
    let mut found = Vec::new();
    for name in &args.names {
        let before = found.len();
        found.extend(
            lock.artifacts
                .iter()
                .filter(|artifact| match &artifact.source {
                    Source::Recipe { recipe, arch, .. } => {
                        let called = artifact.name == *name || recipe.replace('_', "-") == *name;
                        called && (wanted.is_empty() || wanted.contains(arch))
                    }
                    _ => false,
                }),
        );
        if found.len() == before {
            let message = format!("no recipe in the lock builds `{name}` for that arch");
            return Err(Error::Refused(message));
        }
    }
    Ok(found)
}

pub fn verify(context: &Context, args: &cli::Verify, report: &mut Report) -> Result<()> {
    for artifact in chosen(&context.lock, &args.names, args.names.is_empty())? {
        let name = &artifact.name;
        let finding = verify::verify(context, artifact, args.deep)?;
        let mut row = json!(finding);
        row["name"] = name.clone().into();
        let line = match &finding {
            Finding::Good => format!("{name}: good"),
            Finding::Rebuilt => format!("{name}: good, and rebuilt with the same bytes"),
            Finding::Missing => format!("{name}: MISSING; run `artifacts fetch {name}`"),
            Finding::Damaged { .. } => {
                format!("{name}: DAMAGED and removed; run `artifacts fetch {name}`")
            }
            Finding::Different { sha256 } => {
                format!("{name}: DIFFERENT; its recipe produces {sha256}")
            }
        };
        report.ok &= finding.is_good();
        report.row(row, &line);
    }
    Ok(())
}

pub fn upload(context: &Context, args: &cli::Upload, report: &mut Report) -> Result<()> {
    let store = store::Store::parse(&args.to)?;
    let licence = if args.accept_licence {
        Licence::Accepted
    } else {
        Licence::Respected
    };
    for artifact in chosen(&context.lock, &args.names, false)? {
        let url = upload::upload(context, artifact, &store, licence)?;
        let row = json!({ "name": artifact.name, "status": "ok", "url": url });
        report.row(row, &format!("{}: {url}", artifact.name));
    }
    Ok(())
}

pub fn sbom(context: &Context, args: &cli::Sbom) -> Result<()> {
    let root = context.lock_path.parent().and_then(Path::parent);
    let bill = sbom::document(&context.lock, root.unwrap_or(Path::new(".")))?;
    let text = serde_json::to_string_pretty(&bill).unwrap_or_default();
    match &args.out {
        Some(path) => std::fs::write(path, text + "\n").at("write", path),
        None => {
            workspace::say!("{text}");
            Ok(())
        }
    }
}

pub fn gc(context: &Context, args: &cli::Gc, report: &mut Report) -> Result<()> {
    let garbage = gc::find(&context.cache, &context.lock)?;
    for item in &garbage {
        let row = json!({ "path": item.path, "bytes": item.bytes });
        report.row(
            row,
            &format!("{} ({} bytes)", item.path.display(), item.bytes),
        );
    }
    if !args.dry_run {
        gc::remove(&garbage)?;
    }
    Ok(())
}
