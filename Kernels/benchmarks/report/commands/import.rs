//! `report import`: workload files, and the commands that run them.

use crate::arguments::ImportArguments;
use crate::{print, read, tell, write};
use report_lib::{import, import_trace, ReportingError, TraceOptions, TraceShape};
use std::path::Path;
use std::process::ExitCode;

pub fn run(arguments: &ImportArguments) -> Result<ExitCode, ReportingError> {
    match (&arguments.trace, &arguments.output) {
        (Some(trace), Some(output)) => from_trace(arguments, trace, output)?,
        _ => from_definitions(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn from_trace(
    arguments: &ImportArguments,
    trace: &Path,
    output: &Path,
) -> Result<(), ReportingError> {
    let given = |option: &Option<String>| option.clone().unwrap_or_default();
    let options = TraceOptions {
        shape: TraceShape::parse(&given(&arguments.bench), &given(&arguments.heads))?,
        max_batch: arguments.max_batch,
        samples: arguments.samples,
        step_ms: arguments.step_ms,
        max_prefill_tokens: arguments.max_prefill_tokens,
    };
    let workloads = import_trace(trace, &read(trace)?, &options)?;
    let text = json(&workloads)?;
    write(output, text.as_bytes(), &[trace.to_owned()])?;
    print(&format!(
        "{} --workloads {}\n",
        workloads.bench,
        quoted(output)
    ));
    Ok(())
}

fn from_definitions(arguments: &ImportArguments) -> Result<(), ReportingError> {
    let mut files = Vec::new();
    for path in &arguments.files {
        files.push((path.clone(), read(path)?));
    }
    let mut imported = import(&files)?;
    match &arguments.output {
        None => {
            for suite in &imported.suites {
                match &suite.configs {
                    Some(configs) => {
                        print(&format!(
                            "{} --configs {}\n",
                            suite.command,
                            configs.join(",")
                        ));
                    }
                    None => imported.left_out.push(format!(
                        "{}: its shapes need a workload file; pass -o FOLDER",
                        suite.workloads.suite
                    )),
                }
            }
        }
        Some(folder) => {
            // All or nothing: every text exists before the first file does.
            let mut written = Vec::new();
            for suite in &imported.suites {
                written.push((folder.join(suite.file_name()), json(&suite.workloads)?));
            }
            if !written.is_empty() {
                std::fs::create_dir_all(folder)
                    .map_err(|error| ReportingError::input(folder.display(), error))?;
            }
            for (suite, (path, text)) in imported.suites.iter().zip(&written) {
                write(path, text.as_bytes(), &arguments.files)?;
                print(&format!("{} --workloads {}\n", suite.command, quoted(path)));
            }
        }
    }
    for reason in &imported.left_out {
        tell(&format!("left out: {reason}"));
    }
    Ok(())
}

fn json(workloads: &record::WorkloadFile) -> Result<String, ReportingError> {
    let text = workloads.to_json();
    text.map_err(|error| ReportingError::Usage(error.to_string()))
}

/// A path as a word of a shell's command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let safe = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    match text.chars().all(safe) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
