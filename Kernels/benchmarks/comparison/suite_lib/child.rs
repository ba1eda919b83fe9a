//! One bench as a child process.

use crate::folder::Folder;
use crate::plan::Task;
use crate::progress::Progress;
use crate::SuiteError;
use children::Leash;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Longer lines are shown in parts.
const LINE_MAX: u64 = 64 << 10;

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
        .stdin(folder.held()?)
        .stdout(table)
        .stderr(Stdio::piped())
        .follow()
        .spawn()
        .map_err(|error| failed(&task.program, error))?;
    if let Some(stderr) = child.stderr.take() {
        pass_on(BufReader::new(stderr), &mut log, progress);
    }
    let status = child.wait().map_err(|error| failed(&task.program, error))?;
    Ok(match status.code() {
        Some(0) => End::Sound,
        // 128 + signal: the bench caught it and wrote what it had.
        Some(code) if code > 128 => End::Interrupted,
        Some(code) => {
            workspace::tell!("{} exited with code {code}", task.name);
            End::Failed
        }
        None => {
            workspace::tell!("{} was killed: {status}", task.name);
            End::Failed
        }
    })
}

/// Copies messages line by line to the log, and shows them. They are bytes: a contender prints what it
/// likes.
fn pass_on(mut messages: impl BufRead, log: &mut File, progress: &mut Progress) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match messages
            .by_ref()
            .take(LINE_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // The log is a convenience; the result file reports a full disk.
        let _ = log.write_all(&line);
        let text = record::printable(String::from_utf8_lossy(&line).trim_end());
        workspace::tell!("{}", progress.line(&text));
    }
}

/// Measures the roofs into `<folder>/roofline.json`, unless it exists.
pub fn roofs(program: &Path, device: &str, folder: &Folder) -> Result<(), SuiteError> {
    let json = folder.file("roofline.json");
    if json.exists() {
        return Ok(());
    }
    workspace::tell!("measuring the roofs");
    let output = Command::new(program)
        .args(["--device", device, "--no-store", "--json"])
        .arg(&json)
        .stdin(folder.held()?)
        .follow()
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
