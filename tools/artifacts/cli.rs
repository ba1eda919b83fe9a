//! The command line.

use std::path::PathBuf;

use artifacts_lib::Error;
use clap::{Args, Parser, Subcommand, ValueEnum};
use on_demand::{GemmKernel, Variant};

/// Fetch, build, pin, verify and upload the artifacts in third_party/artifacts.lock.json.
#[derive(Parser)]
#[command(name = "artifacts", after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  artifacts list                                    what is in the lock and in the cache
  artifacts fetch --all                             everything, to the cache
  artifacts fetch quack-kernels --unpack out        one wheel, unpacked into out/quack-kernels
  artifacts fetch --all --out mirror                a folder for machines without a network
  artifacts --mirror mirror fetch --all             ... and how to use it there
  artifacts build quack --arch sm_90a --unpack out  objects, headers and kernels.json
  artifacts build quack --source ../quack --out out ... from a local checkout
  artifacts build quack --width 5120                for a shape of yours; benches find it
  artifacts pin quack-kernels@0.6.6                 record another version in the lock
  artifacts pin zizmor-aarch64                      the same version for another CPU
  artifacts verify --deep                           rehash everything, rebuild all recipes
  artifacts upload quack-sm_90a --to s3://bucket/prefix --accept-licence
  artifacts sbom --out sbom.json                    CycloneDX
  artifacts gc                                      remove what the lock no longer names

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.";

#[derive(Args)]
pub struct Common {
    /// The lock file [default: third_party/artifacts.lock.json of this checkout]
    #[arg(long, global = true, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Cache folder [default: $HEAD_TO_HEAD_CACHE/artifacts, ~/.cache/head-to-head/artifacts]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Folder or URL with the files by name; tried first [also: $HEAD_TO_HEAD_MIRROR]
    #[arg(long, global = true, value_name = "DIR|URL")]
    pub mirror: Vec<String>,
    /// Python for pip and recipes, 3.11 to 3.13 [also: $HEAD_TO_HEAD_PYTHON; default: search PATH]
    #[arg(long, global = true, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Folder with the recipes [default: tools/artifacts/recipes of this checkout]
    #[arg(long, global = true, value_name = "DIR")]
    pub recipes: Option<PathBuf>,
    /// Print one JSON document to stdout, for CI
    #[arg(long, global = true)]
    pub json: bool,
    /// Hide progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Attempts per URL
    #[arg(long, global = true, default_value_t = 5, value_name = "N")]
    pub attempts: u32,
    /// Retry a transfer after this many seconds without 16 KiB of progress
    #[arg(long, global = true, default_value_t = 30, value_name = "SECONDS")]
    pub stall: u64,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the artifacts in the lock
    List,
    /// Fetch artifacts to the cache
    Fetch(Fetch),
    /// Record a package version, or a recipe's result, in the lock
    Pin(Pin),
    /// Run recipes and check their results against the lock
    Build(Build),
    /// Rehash everything in the cache
    Verify(Verify),
    /// Upload artifacts to a store and record their URLs in the lock
    Upload(Upload),
    /// Write a CycloneDX bill of materials
    Sbom(Sbom),
    /// Remove files from the cache that the lock does not name
    Gc(Gc),
}

#[derive(Args)]
pub struct Fetch {
    /// Artifacts, as `list` names them
    pub names: Vec<String>,
    /// Everything in the lock
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    #[command(flatten)]
    pub outputs: Outputs,
    /// Parallel downloads
    #[arg(long, short, default_value_t = 4, value_name = "N")]
    pub jobs: usize,
}

#[derive(Args)]
pub struct Outputs {
    /// Also copy each file to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also unpack each archive to DIR/<name>
    #[arg(long, value_name = "DIR")]
    pub unpack: Option<PathBuf>,
}

#[derive(Args)]
pub struct Pin {
    /// NAME or NAME@VERSION; without a version, the newest one
    pub name: String,
    /// Package name in the registry, if it is not NAME; an artifact of that name is `before`, too
    #[arg(long)]
    pub package: Option<String>,
    /// SPDX expression or LicenseRef-... [default: as before, or the package's metadata]
    #[arg(long)]
    pub licence: Option<String>,
    /// Project home page [default: as before, or the package's metadata]
    #[arg(long)]
    pub upstream: Option<String>,
    /// Whether anybody may redistribute it [default: as before, or false]
    #[arg(long)]
    pub redistributable: Option<bool>,
    /// Pin the source package, not a wheel
    #[arg(long)]
    pub sdist: bool,
    /// Record the digest of this member of the wheel; repeatable [default: as before]
    #[arg(long, value_name = "MEMBER")]
    pub file: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Arch {
    #[value(name = "sm_90a")]
    Sm90a,
    #[value(name = "sm_100a")]
    Sm100a,
    /// PTX, for the interpreter
    #[value(name = "compute_90a")]
    Compute90a,
    #[value(name = "compute_100a")]
    Compute100a,
}

#[derive(Args)]
pub struct Build {
    /// Recipes (quack) or artifacts (quack-sm_90a)
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Build only for this arch; repeatable
    #[arg(long)]
    pub arch: Vec<Arch>,
    /// Build from this local checkout; the result goes to --out and is not checked
    #[arg(long, value_name = "DIR", requires = "out")]
    pub source: Option<PathBuf>,
    /// Build for rows of N columns, into the cache that benches read (quack, liger)
    #[arg(long, value_name = "N", value_parser = size, conflicts_with_all = OTHER_BUILDS)]
    pub width: Option<usize>,
    /// ... for these heads of queries and keys, and their dimension (liger)
    #[arg(long, value_name = "QUERYxKEYxDIM", conflicts_with_all = OTHER_BUILDS, conflicts_with = "width")]
    pub heads: Option<String>,
    /// ... for this head dimension (flash-attention-4)
    #[arg(long, value_name = "N", value_parser = size, requires = "group", conflicts_with_all = OTHER_BUILDS,
        conflicts_with_all = ["width", "heads"])]
    pub head_dim: Option<usize>,
    /// ... and this many query heads per key head (flash-attention-4)
    #[arg(long, value_name = "N", value_parser = size, requires = "head_dim")]
    pub group: Option<usize>,
    /// ... for products with this many columns, 0 for any (deep-gemm)
    #[arg(long, value_name = "N", value_parser = size_or_any, requires_all = ["k", "kernel"],
        conflicts_with_all = OTHER_BUILDS, conflicts_with_all = ["width", "heads", "head_dim"])]
    pub n: Option<usize>,
    /// ... and this depth, 0 for any (deep-gemm)
    #[arg(long, value_name = "N", value_parser = size_or_any, requires = "n")]
    pub k: Option<usize>,
    /// ... with this choice of the library, as the row of a bench names it: fp8-dense-128x160-5-2x1 (deep-gemm)
    #[arg(long, requires = "n")]
    pub kernel: Option<GemmKernel>,
    /// ... of this release of the library, which the lock pins beside the current one
    #[arg(long, value_name = "VERSION", value_parser = release, conflicts_with_all = OTHER_BUILDS)]
    pub release: Option<String>,
    #[command(flatten)]
    pub outputs: Outputs,
}

/// A size that kernels have, with room.
fn size(text: &str) -> Result<usize, String> {
    let size = text
        .parse()
        .ok()
        .filter(|size| (1..=1 << 20).contains(size));
    size.ok_or_else(|| "expected a number from 1 to 2^20".to_owned())
}

/// The same, or 0 where the kernel gets the size when it runs.
fn size_or_any(text: &str) -> Result<usize, String> {
    match text {
        "0" => Ok(0),
        _ => size(text).map_err(|_| "expected a number from 0 to 2^20".to_owned()),
    }
}

/// A version as registries have them: it becomes part of a folder's name.
fn release(text: &str) -> Result<String, String> {
    const LONGEST: usize = 64;
    let fits = |c: char| c.is_ascii_alphanumeric() || ".+!_-".contains(c);
    let is_version = text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() <= LONGEST
        && text.chars().all(fits);
    let version = is_version.then(|| text.to_owned());
    version.ok_or_else(|| "expected a version like 0.6.4".to_owned())
}

/// Options of builds that end elsewhere than in the cache that benches read.
const OTHER_BUILDS: [&str; 3] = ["source", "out", "unpack"];

impl Build {
    /// The sizes to build for; none for those of the lock.
    pub fn variant(&self) -> Result<Option<Variant>, Error> {
        if let (Some(n), Some(k), Some(kernel)) = (self.n, self.k, self.kernel) {
            return Ok(Some(Variant::Gemm { n, k, kernel }));
        }
        Ok(match (self.width, &self.heads, self.head_dim, self.group) {
            (Some(width), ..) => Some(Variant::Width(width)),
            (_, Some(heads), ..) => Some(heads_of(heads)?),
            (_, _, Some(head_dim), Some(group)) => Some(Variant::Group { head_dim, group }),
            _ => None,
        })
    }
}

fn heads_of(text: &str) -> Result<Variant, Error> {
    let sizes: Option<Vec<usize>> = text.split('x').map(|part| size(part).ok()).collect();
    match sizes.as_deref() {
        Some(&[query, key, dim]) => Ok(Variant::Heads { query, key, dim }),
        _ => Err(Error::Refused(format!(
            "--heads {text}: expected heads of queries, heads of keys and their dimension, like 40x8x128"
        ))),
    }
}

#[derive(Args)]
pub struct Verify {
    /// Artifacts [default: all]
    pub names: Vec<String>,
    /// Also rebuild each recipe and compare
    #[arg(long)]
    pub deep: bool,
}

#[derive(Args)]
pub struct Upload {
    /// Artifacts, as `list` names them
    #[arg(required = true)]
    pub names: Vec<String>,
    /// s3://bucket/prefix, file:///path or https://...
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Confirm that you may redistribute what is not marked redistributable
    #[arg(long)]
    pub accept_licence: bool,
}

#[derive(Args)]
pub struct Sbom {
    /// Write to this file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct Gc {
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
}
