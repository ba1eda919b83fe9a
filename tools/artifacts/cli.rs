//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Fetch, build, pin, verify and upload the artifacts of third_party/artifacts.lock.json.
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
  artifacts list                                    what there is, and what is cached
  artifacts fetch --all                             everything, into the cache
  artifacts fetch quack-kernels --unpack out        one wheel, unpacked into out/quack-kernels
  artifacts fetch --all --out mirror                a folder for machines without a network
  artifacts --mirror mirror fetch --all             ... and its use there
  artifacts build quack --arch sm_90a --unpack out  objects, headers and kernels.json
  artifacts build quack --source ../quack --out out ... from a local checkout
  artifacts pin quack-kernels@0.6.6                 another version, recorded in the lock
  artifacts pin zizmor-aarch64                      the same version for another CPU
  artifacts verify --deep                           read all again, build all recipes again
  artifacts upload quack-sm_90a --to s3://bucket/prefix --accept-licence
  artifacts sbom --out sbom.json                    CycloneDX
  artifacts gc                                      drop what the lock does not name

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

#[derive(Args)]
pub struct Common {
    /// The lock [default: third_party/artifacts.lock.json of this checkout]
    #[arg(long, global = true, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Cache folder [default: $HEAD_TO_HEAD_CACHE/artifacts, ~/.cache/head-to-head/artifacts]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Folder or URL that holds the files by name; asked first [also: $HEAD_TO_HEAD_MIRROR]
    #[arg(long, global = true, value_name = "DIR|URL")]
    pub mirror: Vec<String>,
    /// Python for pip and recipes, 3.11 to 3.13 [also: $HEAD_TO_HEAD_PYTHON; default: search PATH]
    #[arg(long, global = true, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Folder of the recipes [default: tools/artifacts/recipes of this checkout]
    #[arg(long, global = true, value_name = "DIR")]
    pub recipes: Option<PathBuf>,
    /// One JSON document on stdout, for CI
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Attempts per address
    #[arg(long, global = true, default_value_t = 5, value_name = "N")]
    pub attempts: u32,
    /// Seconds without 16 KiB of progress after which a transfer is dropped and tried again
    #[arg(long, global = true, default_value_t = 30, value_name = "SECONDS")]
    pub stall: u64,
}

#[derive(Subcommand)]
pub enum Command {
    /// Show the artifacts of the lock
    List,
    /// Bring artifacts into the cache
    Fetch(Fetch),
    /// Record a package version, or a recipe's result, in the lock
    Pin(Pin),
    /// Run recipes, and check their results against the lock
    Build(Build),
    /// Hash what is cached again
    Verify(Verify),
    /// Put artifacts into a store and their addresses into the lock
    Upload(Upload),
    /// Write a CycloneDX bill of materials
    Sbom(Sbom),
    /// Remove from the cache what the lock does not name
    Gc(Gc),
}

#[derive(Args)]
pub struct Fetch {
    pub names: Vec<String>,
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    #[command(flatten)]
    pub outputs: Outputs,
    /// Downloads at a time
    #[arg(long, short, default_value_t = 4, value_name = "N")]
    pub jobs: usize,
}

#[derive(Args)]
pub struct Outputs {
    /// Also copy each file into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also unpack each archive into DIR/<name>
    #[arg(long, value_name = "DIR")]
    pub unpack: Option<PathBuf>,
}

#[derive(Args)]
pub struct Pin {
    /// NAME or NAME@VERSION; without a version, the newest
    pub name: String,
    /// Package in the registry, where it is not called NAME
    #[arg(long)]
    pub package: Option<String>,
    /// SPDX expression or LicenseRef-... [default: as before, or the package's metadata]
    #[arg(long)]
    pub licence: Option<String>,
    /// Home of the project [default: as before, or the package's metadata]
    #[arg(long)]
    pub upstream: Option<String>,
    /// Whether anybody may pass it on [default: as before, or false]
    #[arg(long)]
    pub redistributable: Option<bool>,
    /// The source package, not a wheel
    #[arg(long)]
    pub sdist: bool,
    /// A member of the wheel whose digest the lock records; may be repeated [default: as before]
    #[arg(long, value_name = "MEMBER")]
    pub file: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Arch {
    #[value(name = "sm_90a")]
    Sm90a,
    #[value(name = "sm_100a")]
    Sm100a,
}

#[derive(Args)]
pub struct Build {
    /// Recipes (quack) or artifacts (quack-sm_90a)
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Only for this arch; may be repeated
    #[arg(long)]
    pub arch: Vec<Arch>,
    /// Local checkout to build from; the result goes to --out and is not checked
    #[arg(long, value_name = "DIR", requires = "out")]
    pub source: Option<PathBuf>,
    #[command(flatten)]
    pub outputs: Outputs,
}

#[derive(Args)]
pub struct Verify {
    /// [default: all]
    pub names: Vec<String>,
    /// Also build each recipe again and compare
    #[arg(long)]
    pub deep: bool,
}

#[derive(Args)]
pub struct Upload {
    #[arg(required = true)]
    pub names: Vec<String>,
    /// s3://bucket/prefix, file:///path or https://...
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// I may pass on what is not marked redistributable
    #[arg(long)]
    pub accept_licence: bool,
}

#[derive(Args)]
pub struct Sbom {
    /// [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct Gc {
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
}
