//! Variants of recipes, built for a shape of the user's into the folder that benches read.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use on_demand::{digest, Recipe, Record, Store, Variant, Wanted, RECORD, SCHEMA};

use crate::cache::Scratch;
use crate::compiled::{self, Product};
use crate::context::Context;
use crate::error::{At, Error, Result};
use crate::lock::{Artifact, Lock};
use crate::recipe::{self, Changes};
use crate::{process, unpack};

const DESCRIPTION: &str = "kernels.json";
const CUBINS: &str = "kernels.bin";
const LIBRARY: &str = "kernels.so";
/// Objects of the CuTe DSL call these two; the first comes with the recipe's wheels.
const DIALECT_RUNTIME: &str = "nvidia_cutlass_dsl/cu12/lib/libcuda_dialect_runtime_static.a";
const CUDA_RUNTIME: &str = "nvidia/cu13/lib/libcudart_static.a";

/// The recipe called `name`, if it builds such variants.
pub fn recipe_for(name: &str, variant: &Variant) -> Result<Recipe> {
    let known = Recipe::ALL.map(|recipe| format!("{} {}", recipe.name(), recipe.options()));
    match Recipe::of(name).filter(|recipe| recipe.takes(variant)) {
        Some(recipe) => Ok(recipe),
        None => Err(Error::Refused(format!(
            "`{name}` is not built for `{}`; there are: {}",
            variant.arguments().join(" "),
            known.join("; ")
        ))),
    }
}

/// Builds a variant and replaces what the store had of it; nobody sees a part of it.
pub fn build(context: &Context, wanted: &Wanted, store: &Store) -> Result<(Record, PathBuf)> {
    // What refuses it comes before anything is named after it.
    let origin = origin_of(&context.lock, wanted)?;
    let no_home = || Error::Refused("no HOME for the cache; set HEAD_TO_HEAD_CACHE".into());
    let folder = store.folder(wanted).ok_or_else(no_home)?;
    let root = folder.parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(root);
    made.at("create", root)?;
    let _guard = context.cache.guard(&wanted.to_string())?;

    let made = match origin {
        Origin::Compiler(product) => compile(context, wanted, &product)?,
        Origin::Recipe(artifact) => run_recipe(context, artifact, wanted)?,
    };

    let fresh = tempfile::Builder::new()
        .prefix(".partial-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(root);
    let fresh = fresh.at("create a folder in", root)?;
    let mut files = BTreeMap::new();
    for name in [DESCRIPTION, made.code] {
        let from = made.archive.join(name);
        let bytes = fs::read(&from).at("read", &from)?;
        let to = fresh.path().join(name);
        fs::write(&to, &bytes).at("write", &to)?;
        files.insert(name.to_owned(), digest(&bytes));
    }
    let record = Record {
        schema: SCHEMA,
        name: wanted.to_string(),
        version: made.version,
        cpu: std::env::consts::ARCH.to_owned(),
        archive_sha256: made.sha256,
        files,
    };
    let path = fresh.path().join(RECORD);
    let text = serde_json::to_string_pretty(&record).unwrap_or_default() + "\n";
    fs::write(&path, text).at("write", &path)?;
    replace(fresh.path(), &folder)?;
    Ok((record, folder))
}

/// What builds a variant.
enum Origin<'a> {
    /// The recipe of an artifact.
    Recipe(&'a Artifact),
    /// nvcc, without a recipe.
    Compiler(Product),
}

fn origin_of<'a>(lock: &'a Lock, wanted: &Wanted) -> Result<Origin<'a>> {
    if let Some(product) = Product::of(wanted)? {
        return Ok(Origin::Compiler(product));
    }
    let artifact = artifact_of(lock, wanted)?;
    if let Some(release) = &wanted.release {
        recipe::other_release(lock, artifact, release)?;
    }
    Ok(Origin::Recipe(artifact))
}

/// What goes into the store.
struct Made {
    /// Holds the description and the code.
    archive: PathBuf,
    code: &'static str,
    version: String,
    sha256: String,
    /// Removed with this value.
    _folder: Scratch,
}

fn run_recipe(context: &Context, artifact: &Artifact, wanted: &Wanted) -> Result<Made> {
    let version = match (&wanted.release, artifact.version.split_once('+')) {
        (None, _) => artifact.version.clone(),
        (Some(release), Some((_, revision))) => format!("{release}+{revision}"),
        (Some(release), None) => release.clone(),
    };
    let sizes = wanted.variant.arguments();
    let changes = Changes {
        variant: &sizes,
        release: wanted.release.as_deref(),
        ..Changes::default()
    };
    let built = recipe::run(context, artifact, &changes)?;
    let scratch = built.folder.path();
    let archive = scratch.join("archive");
    unpack::unpack(
        &built.archive,
        &archive,
        unpack::Bounds::default(),
        &context.cancel,
    )?;
    let code = match archive.join("objects").is_dir() {
        true => {
            link(context, scratch, &archive)?;
            LIBRARY
        }
        false => CUBINS,
    };
    Ok(Made {
        archive,
        code,
        version,
        sha256: built.digest.to_string(),
        _folder: built.folder,
    })
}

fn compile(context: &Context, wanted: &Wanted, product: &Product) -> Result<Made> {
    let refused = || Error::Refused(format!("nothing is compiled for {}", wanted.arch));
    let version = wanted.version().ok_or_else(refused)?;
    let folder = context.cache.scratch()?;
    let archive = folder.path().join("archive");
    compiled::compile(context, product, &archive)?;
    let code = archive.join(CUBINS);
    let bytes = fs::read(&code).at("read", &code)?;
    Ok(Made {
        archive,
        code: CUBINS,
        version,
        sha256: digest(&bytes),
        _folder: folder,
    })
}

/// Renames a folder to where another may be. The old one goes first: a bench in between finds none.
fn replace(fresh: &Path, folder: &Path) -> Result<()> {
    let old = fresh.with_extension("old");
    if folder.exists() {
        fs::rename(folder, &old).at("replace", folder)?;
        fs::remove_dir_all(&old).at("remove", &old)?;
    }
    fs::rename(fresh, folder).at("store", folder)
}

/// The artifact whose recipe and inputs build it: for this machine's CPU, if host code depends on that.
fn artifact_of<'a>(lock: &'a Lock, wanted: &Wanted) -> Result<&'a Artifact> {
    let name = format!("{}-{}", wanted.recipe.name(), wanted.arch);
    let cpu = std::env::consts::ARCH;
    lock.get(&format!("{name}-{cpu}"))
        .or_else(|_| lock.get(&name))
}

/// Links the objects to one library, whose only visible functions are theirs.
fn link(context: &Context, scratch: &Path, archive: &Path) -> Result<()> {
    let runtime = match std::env::consts::ARCH {
        "x86_64" => "nvidia-cuda-runtime".to_owned(),
        cpu => format!("nvidia-cuda-runtime-{cpu}"),
    };
    let runtime = context.lock.get(&runtime)?;
    context.fetch(runtime)?;
    let toolkit = scratch.join("toolkit");
    let blob = context.cache.blob(runtime.sha256);
    unpack::unpack(&blob, &toolkit, unpack::Bounds::default(), &context.cancel)?;

    let objects = archive.join("objects");
    let listed = fs::read_dir(&objects).at("read", &objects)?;
    let mut objects = listed
        .map(|entry| Ok(entry.at("read", &objects)?.path()))
        .collect::<Result<Vec<_>>>()?;
    objects.sort();
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-Wl,--exclude-libs,ALL,-z,defs,-Bsymbolic", "-o"])
        .arg(archive.join(LIBRARY))
        .args(objects)
        .arg(scratch.join("site").join(DIALECT_RUNTIME))
        .arg(toolkit.join(CUDA_RUNTIME))
        .args(["-lpthread", "-ldl", "-lrt"]);
    process::run(
        &mut command,
        &scratch.join("link.log"),
        &context.cancel,
        || Ok(()),
    )
}
