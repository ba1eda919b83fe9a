//! The first run on a card that nobody has tried: the gate of every bench on small shapes, then the roofs, then the
//! quick suite. It stops at the first of our kernels that is wrong, and leaves one archive in any case.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use record::{ContenderKind, Row, RowKey, Status};

/// Tries a new card: gates, roofs, the quick suite; leaves one archive to send back
#[derive(Debug, Parser)]
#[command(
    name = "bring_up",
    after_help = "Exit codes: 0 all of our kernels are right; 1 one is not, or a program failed; 2 wrong usage."
)]
struct Options {
    /// Folder to write into; it must not exist. The archive has the same name and .tar.gz
    #[arg(long, value_name = "FOLDER", default_value = "bring_up")]
    out: PathBuf,
    /// Device: cpu, cuda or ptx [default: what the benches are built for]
    #[arg(long)]
    device: Option<String>,
    /// Stop after the gates
    #[arg(long)]
    gates_only: bool,
    /// Bench whose gate to run; repeatable [default: all that are built with this program]
    #[arg(long = "bench", value_name = "FILE")]
    benches: Vec<PathBuf>,
    /// Options for the gates' benches, after --
    #[arg(last = true, value_name = "BENCH OPTIONS")]
    more: Vec<String>,
}

type Outcome<T> = Result<T, String>;

/// The programs that Bazel built with this one.
fn built(variable: &str) -> Outcome<Vec<PathBuf>> {
    let names = std::env::var(variable).unwrap_or_default();
    let absolute = |name: &str| std::path::absolute(name).map_err(|error| error.to_string());
    names.split_whitespace().map(absolute).collect()
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("bring_up: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Outcome<()> {
    // Before the folder changes: the names are relative to the runfiles.
    let gates = match options.benches.is_empty() {
        true => built("BRING_UP_BENCHES")?,
        false => options.benches.clone(),
    };
    let (roofline, suite) = (built("BRING_UP_ROOFLINE")?, built("BRING_UP_SUITE")?);
    workspace::enter_user_folder().map_err(|error| error.to_string())?;
    let out = &options.out;
    fs::create_dir(out).map_err(|error| {
        format!(
            "cannot make {}: {error}; choose another folder with --out",
            out.display()
        )
    })?;
    let result = steps(options, &gates, &roofline, &suite);
    let archive = archive(out)?;
    eprintln!("send back {}", archive.display());
    result
}

fn steps(
    options: &Options,
    gates: &[PathBuf],
    roofline: &[PathBuf],
    suite: &[PathBuf],
) -> Outcome<()> {
    let mut emulated = false;
    for bench in gates {
        emulated |= gate(bench, options)? == Device::Emulated;
    }
    if options.gates_only {
        return Ok(());
    }
    if emulated {
        eprintln!("no roofs and no suite: the device is emulated, and nothing is timed there");
        return Ok(());
    }
    let device = options
        .device
        .iter()
        .flat_map(|device| ["--device", device]);
    for program in roofline {
        let roofs = options.out.join("roofs.json");
        eprintln!("== roofs");
        let mut command = Command::new(program);
        command.arg("--json").arg(&roofs).args(device.clone());
        succeed(&mut command, &options.out.join("roofs.txt"))?;
    }
    for program in suite {
        eprintln!("== the quick suite");
        let mut command = Command::new(program);
        command
            .arg("--quick")
            .arg("--out")
            .arg(options.out.join("suite"));
        command.arg("--").args(device.clone());
        succeed(&mut command, &options.out.join("suite.txt"))?;
    }
    Ok(())
}

/// What the rows of a gate say about the device.
#[derive(PartialEq, Eq)]
enum Device {
    Timed,
    Emulated,
}

/// Runs a bench on its small shapes. Rows of others may fail: they are in the archive.
fn gate(bench: &Path, options: &Options) -> Outcome<Device> {
    let name = bench.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("== gate of {name}");
    let file = options.out.join(format!("{name}.json"));
    let mut command = Command::new(bench);
    command
        .args(["--suite", "smoke", "--iters", "10", "--json"])
        .arg(&file);
    command.args(
        options
            .device
            .iter()
            .flat_map(|device| ["--device", device]),
    );
    command.args(&options.more);
    let log = options.out.join(format!("{name}.txt"));
    let ended = logged(&mut command, &log)?;
    let rows = match record::read_json(&file) {
        Ok(file) => file.rows,
        Err(error) => {
            return Err(format!(
                "{name} left no result ({ended}): {error}; see {}",
                log.display()
            ))
        }
    };
    let right = |row: &&Row| !row.status.is_failure();
    let own = |row: &&Row| row.contender.kind == ContenderKind::Own;
    for row in rows.iter().filter(|row| !own(row) && !right(row)) {
        eprintln!(
            "   {}: {}, {}",
            RowKey::of(row),
            row.status,
            row.reason.as_deref().unwrap_or("")
        );
    }
    match rows.iter().filter(own).find(|row| !right(row)) {
        Some(row) => Err(first_wrong(row)),
        None => {
            let ran = |row: &&Row| row.status != Status::Unsupported;
            let right = rows.iter().filter(own).filter(ran).count();
            eprintln!("   {right} of our rows are right");
            let emulated = rows.iter().any(|row| row.status == Status::Emulated);
            Ok(match emulated {
                true => Device::Emulated,
                false => Device::Timed,
            })
        }
    }
}

/// What somebody needs to know of it.
fn first_wrong(row: &Row) -> String {
    let facts: Vec<String> = row
        .facts
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    format!(
        "{} is {}: {}\n   facts: {}\n   repeat it: {}",
        RowKey::of(row),
        row.status,
        row.reason.as_deref().unwrap_or("no reason is known"),
        facts.join(", "),
        row.repro
    )
}

fn succeed(command: &mut Command, log: &Path) -> Outcome<()> {
    let ended = logged(command, log)?;
    match ended.success() {
        true => Ok(()),
        false => {
            let program = Path::new(command.get_program());
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            Err(format!("{name} failed ({ended}); see {}", log.display()))
        }
    }
}

/// Runs a program whose output goes to a file.
fn logged(command: &mut Command, log: &Path) -> Outcome<std::process::ExitStatus> {
    let failed = |error: std::io::Error| format!("{}: {error}", log.display());
    let file = fs::File::create(log).map_err(failed)?;
    let errors = file.try_clone().map_err(failed)?;
    let program = PathBuf::from(command.get_program());
    let ended = command.stdout(file).stderr(errors).status();
    ended.map_err(|error| format!("{}: {error}", program.display()))
}

/// Everything in one file.
fn archive(folder: &Path) -> Outcome<PathBuf> {
    let mut name = folder.as_os_str().to_owned();
    name.push(".tar.gz");
    let archive = PathBuf::from(name);
    let packed = Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg(folder)
        .status();
    match packed {
        Ok(status) if status.success() => Ok(archive),
        Ok(status) => Err(format!(
            "tar could not pack {} ({status})",
            folder.display()
        )),
        Err(error) => Err(format!("tar: {error}; pack {} yourself", folder.display())),
    }
}
