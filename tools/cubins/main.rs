//! Fingerprints machine code: lists the kernels of binaries, or compares those of two, ignoring names.

mod elf;
mod listing;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use clap::{Parser, Subcommand};
use listing::Listing;

/// Lists and compares the kernels of binaries: machine code, registers, barriers, shared memory and stack.
///
/// A binary is a cubin, an object file, an archive or an executable; the output of `cubins list` works in its place.
/// Names are not compared, so code that was moved or renamed compares equal.
#[derive(Parser)]
#[command(name = "cubins")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Prints one line per kernel.
    List {
        /// Binaries.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints the kernels that only one of two binaries or lists has; fails if there are any.
    Compare { old: PathBuf, new: PathBuf },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("cubins: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> io::Result<ExitCode> {
    // In the runfiles, which are left next.
    let cuobjdump = env::var_os("CUOBJDUMP").map(fs::canonicalize).transpose()?;
    workspace::enter_user_folder()?;
    let read = |file: &Path, listing: &mut Listing| read(file, cuobjdump.as_deref(), listing);
    match cli.command {
        Task::List { files } => {
            let mut listing = Listing::new();
            for file in files {
                read(&file, &mut listing)?;
            }
            let mut out = io::stdout().lock();
            for line in listing::lines(&listing) {
                writeln!(out, "{line}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Compare { old, new } => {
            let (mut before, mut after) = (Listing::new(), Listing::new());
            read(&old, &mut before)?;
            read(&new, &mut after)?;
            let (shared, differences) = listing::compare(&before, &after);
            for line in &differences {
                println!("{line}");
            }
            println!(
                "{shared} kernels equal, {} without a counterpart",
                differences.len()
            );
            Ok(ExitCode::from(u8::from(!differences.is_empty())))
        }
    }
}

/// Adds the kernels of a file. A file without any is an error: nothing would be compared.
fn read(file: &Path, cuobjdump: Option<&Path>, listing: &mut Listing) -> io::Result<()> {
    let failed = |why: String| io::Error::other(format!("{}: {why}", file.display()));
    let bytes = fs::read(file).map_err(|error| failed(error.to_string()))?;
    let mut found = Listing::new();
    if elf::is_cubin(&bytes) {
        add_cubin(&bytes, &mut found).map_err(failed)?;
    } else if bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"!<arch>\n") {
        let cuobjdump = cuobjdump.ok_or_else(|| {
            failed(
                "unpacking it needs cuobjdump: build cubins with --config=sm90a, or set CUOBJDUMP"
                    .into(),
            )
        })?;
        add_packed(file, cuobjdump, &mut found).map_err(|error| failed(error.to_string()))?;
    } else {
        let text =
            String::from_utf8(bytes).map_err(|_| failed("neither a binary nor a list".into()))?;
        found = listing::parse(&text)
            .map_err(|line| failed(format!("neither a binary nor a list of kernels: '{line}'")))?;
    }
    if found.is_empty() {
        return Err(failed("has no kernels".into()));
    }
    for (identity, names) in found {
        listing.entry(identity).or_default().extend(names);
    }
    Ok(())
}

fn add_cubin(bytes: &[u8], listing: &mut Listing) -> Result<(), String> {
    for kernel in elf::kernels(bytes).ok_or("a truncated cubin, or an unknown format")? {
        listing::add(listing, kernel);
    }
    Ok(())
}

/// The cubins in an object file, an archive or an executable.
fn add_packed(file: &Path, cuobjdump: &Path, listing: &mut Listing) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(cuobjdump)
        .args(["--extract-elf", "all"])
        .arg(fs::canonicalize(file)?)
        .current_dir(&folder)
        .output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!(
            "cuobjdump failed: {}",
            words.trim()
        )));
    }
    for entry in fs::read_dir(&folder)? {
        add_cubin(&fs::read(entry?.path())?, listing).map_err(io::Error::other)?;
    }
    Ok(())
}
