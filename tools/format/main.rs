//! Formats every source file of the repository, or with `--check` lists those that are not formatted.
//!
//! The formatters come from the build at pinned versions: rustfmt with the Rust toolchain, buildifier
//! and clang-format from the artifact lock.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use clap::Parser;

/// Formats Rust, C++, CUDA and Starlark.
#[derive(Parser)]
#[command(name = "format")]
struct Options {
    /// Changes nothing; exits with 1 if a file is not formatted.
    #[arg(long)]
    check: bool,
}

struct Formatter {
    name: &'static str,
    program: PathBuf,
    write: &'static [&'static str],
    check: &'static [&'static str],
    takes: fn(&Path) -> bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("format: run './bazelw run //tools/format' to fix these");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("format: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<bool> {
    let root = workspace::root()?;
    let files = workspace::files(&root)?;
    let mut clean = true;
    for formatter in formatters()? {
        let mine: Vec<&PathBuf> = files
            .iter()
            .filter(|file| (formatter.takes)(file))
            .collect();
        if mine.is_empty() {
            continue;
        }
        let arguments = if options.check {
            formatter.check
        } else {
            formatter.write
        };
        let status = Command::new(&formatter.program)
            .args(arguments)
            .args(mine)
            .current_dir(&root)
            .status()
            .map_err(|error| io::Error::other(format!("cannot run {}: {error}", formatter.name)))?;
        clean &= status.success();
    }
    Ok(clean)
}

fn formatters() -> io::Result<[Formatter; 3]> {
    Ok([
        Formatter {
            name: "rustfmt",
            program: program("RUSTFMT")?,
            write: &["--edition", "2021"],
            check: &["--edition", "2021", "--check"],
            takes: |file| has_extension(file, &["rs"]),
        },
        Formatter {
            name: "clang-format",
            program: program("CLANG_FORMAT")?,
            write: &["-i"],
            check: &["--dry-run", "--Werror"],
            takes: |file| has_extension(file, &["h", "cc", "cu", "cuh"]),
        },
        Formatter {
            name: "buildifier",
            program: program("BUILDIFIER")?,
            write: &["--lint=fix", "--mode=fix"],
            check: &["--lint=warn", "--mode=check"],
            takes: |file| {
                has_extension(file, &["bzl", "bazel", "BUILD"])
                    || file.file_name().is_some_and(|name| name == "BUILD")
            },
        },
    ])
}

/// A program in the runfiles; the BUILD file names it in this variable.
fn program(variable: &str) -> io::Result<PathBuf> {
    let path = env::var_os(variable).ok_or_else(|| {
        io::Error::other(format!("{variable} is not set: run this through ./bazelw"))
    })?;
    fs::canonicalize(&path)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.to_string_lossy())))
}

fn has_extension(file: &Path, extensions: &[&str]) -> bool {
    file.extension()
        .is_some_and(|found| extensions.iter().any(|extension| found == *extension))
}
