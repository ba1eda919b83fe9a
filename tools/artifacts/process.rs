//! Child processes that end with us, and whose last output becomes the error.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use children::Leash;

use crate::cancel::Cancel;
use crate::error::{At, Error, Result};

const POLL: Duration = Duration::from_millis(50);
const LAST_LINES: usize = 15;

/// Runs to completion, with output in `log`. `watch` monitors the run and may stop it with an error.
pub fn run(
    command: &mut Command,
    log: &Path,
    cancel: &Cancel,
    mut watch: impl FnMut() -> Result<()>,
) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = File::create(log).at("create", log)?;
    let errors = output.try_clone().at("open", log)?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let failed = |message| Error::Program {
        program: program.clone(),
        message,
    };
    let mut child = command
        .leash()
        .spawn()
        .map_err(|error| failed(format!("cannot start: {error}")))?;
    let status = loop {
        if let Some(status) = child.try_wait().at("wait for", Path::new(&program))? {
            break status;
        }
        if let Err(error) = cancel.sleep(POLL).and_then(|()| watch()) {
            children::end(&mut child);
            return Err(error);
        }
    };
    cancel.check()?;
    if status.success() {
        return Ok(());
    }
    Err(failed(format!(
        "{status}; its last output:\n{}",
        last_lines(log)
    )))
}

pub fn last_lines(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
