//! `report history`: runs as lines, and the trends of many.

use crate::{print, read, tell, write};
use clap::Args;
use report_lib::{
    history as lines_of, history_json, history_page, merge, parse_lines, series, unmeasured, views,
    Collection, HistoryLine, ReportingError, View,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Folders inside folders beyond this are not looked into.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// Result files, collections, histories (.jsonl), and folders of them
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write a page with the trends
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the trends as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Append each run of the files to this history, one line of JSON each, and make it part of the trends
    #[arg(long, value_name = "FILE")]
    pub append: Option<PathBuf>,
    /// Exit with 1 unless each of these contenders, such as cudnn,cublaslt, has a time in some row
    #[arg(long, value_name = "CONTENDER", value_delimiter = ',')]
    pub require: Vec<String>,
}

/// What a run's file gives.
#[derive(Default)]
struct Found {
    views: Vec<View>,
    lines: Vec<HistoryLine>,
    /// The lines of `views`, as text.
    new: String,
}

pub fn history(arguments: &HistoryArguments) -> Result<ExitCode, ReportingError> {
    let mut found = Found::default();
    for path in &arguments.files {
        match path.is_dir() {
            true => walk(path, DEPTH_MAX, &mut found)?,
            false => add(path, &mut found)?,
        }
    }
    if let Some(path) = &arguments.append {
        let old = if path.exists() {
            read(path)?
        } else {
            String::new()
        };
        let known = parse_lines(&old, &path.display().to_string())?;
        if found.new.is_empty() {
            return Err(ReportingError::Usage(
                "there is no run to append: give a result file".to_owned(),
            ));
        }
        let end = if old.is_empty() || old.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        write(
            path,
            format!("{old}{end}{}", found.new).as_bytes(),
            &arguments.files,
        )?;
        found.lines.extend(known);
    }
    let all = series(found.lines);
    if let Some(path) = &arguments.output {
        write(path, history_page(&all).as_bytes(), &arguments.files)?;
    }
    if let Some(path) = &arguments.json {
        write(
            path,
            format!("{:#}\n", history_json(&all)).as_bytes(),
            &arguments.files,
        )?;
    }
    for one in all.iter().filter(|one| !one.changes.is_empty()) {
        for change in &one.changes {
            let [before, after] =
                [change.before, change.after].map(|log| record::ratio_text(log.exp()));
            let since = &one.runs[change.at].started_at;
            print(&format!(
                "{}, {}: {before} before, {after} since {since}\n",
                one.device, one.name
            ));
        }
    }
    let unmeasured = unmeasured(&found.views, &arguments.require);
    for sentence in &unmeasured {
        tell(&sentence.to_string());
    }
    Ok(ExitCode::from(u8::from(!unmeasured.is_empty())))
}

/// The runs in a folder; other files are named and left out.
fn walk(folder: &Path, depth: usize, found: &mut Found) -> Result<(), ReportingError> {
    let unreadable = |error: std::io::Error| ReportingError::input(folder.display(), error);
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>, _>>()
        .map_err(unreadable)?;
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if depth > 0 {
                walk(&path, depth - 1, found)?;
            }
        } else if name.ends_with(".jsonl") {
            add(&path, found)?;
        } else if name.ends_with(".json") || name.ends_with(".json.gz") {
            if let Err(error) = add(&path, found) {
                tell(&format!("left out: {error}"));
            }
        }
    }
    Ok(())
}

fn add(path: &Path, found: &mut Found) -> Result<(), ReportingError> {
    if path
        .extension()
        .is_some_and(|extension| extension == "jsonl")
    {
        found
            .lines
            .extend(parse_lines(&read(path)?, &path.display().to_string())?);
        return Ok(());
    }
    let views = views(merge(Collection::read(path)?).collection);
    let text: String = lines_of(&views)
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    found
        .lines
        .extend(parse_lines(&text, &path.display().to_string())?);
    found.new += &text;
    found.views.extend(views);
    Ok(())
}
