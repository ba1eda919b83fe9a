//! One bench as a child process.

use crate::folder::Folder;
use crate::plan::Task;
use crate::progress::Progress;
use crate::SuiteError;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// How a bench ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All rows ok or unsupported.
    Sound,
    /// Some row failed, or the bench did.
    Failed,
    /// A signal ended it: the user wants the suite to stop.
    Interrupted,
}

/// Runs a task into `<folder>/<bench>.json`, keeping existing rows. The bench's messages go to
/// standard error with the suite's progress, and to `<bench>.log` with its table.
pub fn run(
    task: &Task,
    more: &[String],
    folder: &Folder,
    progress: &mut Progress,
) -> Result<End, SuiteError> {
    let json = folder.file(&format!("{}.json", task.name));
    let log_path = folder.file(&format!("{}.log", task.name));
    let failed =
        |path: &Path, error: std::io::Error| SuiteError(format!("{}: {error}", path.display()));
    let mut log = File::options()
        .create(true)
        .append(true)
        .open(&log_path)
        .map_err(|error| failed(&log_path, error))?;
    let table = log.try_clone().map_err(|error| failed(&log_path, error))?;
    let resume = match json.exists() {
        true => vec![Path::new("--resume"), &json],
        false => Vec::new(),
    };
    let mut child = Command::new(&task.program)
        .args(&task.arguments)
        .args(more)
        .args([Path::new("--json"), &json])
        .args(resume)
        .stdin(Stdio::null())
        .stdout(table)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&task.program, error))?;
    folder.note_running(child.id());
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            eprintln!("{}", progress.line(&line));
            // The log is a convenience; the result file reports a full disk.
            let _ = writeln!(log, "{line}");
        }
    }
    let status = child.wait().map_err(|error| failed(&task.program, error))?;
    folder.note_ended();
    Ok(match status.code() {
        Some(0) => End::Sound,
        // 128 + signal: the bench caught it and wrote what it had.
        Some(code) if code > 128 => End::Interrupted,
        Some(code) => {
            eprintln!("{} exited with code {code}", task.name);
            End::Failed
        }
        None => {
            eprintln!("{} was killed: {status}", task.name);
            End::Failed
        }
    })
}

/// Measures the roofs into `<folder>/roofline.json`, unless it exists.
pub fn roofs(program: &Path, device: &str, folder: &Folder) -> Result<(), SuiteError> {
    let json = folder.file("roofline.json");
    if json.exists() {
        return Ok(());
    }
    eprintln!("measuring the roofs");
    let output = Command::new(program)
        .args(["--device", device, "--no-store", "--json"])
        .arg(&json)
        .output()
        .map_err(|error| SuiteError(format!("{}: {error}", program.display())))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(SuiteError(format!(
            "{} exited with {}: {}; use --roofs FILE to pass measured roofs instead",
            program.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}
