//! From the command line to the folder.

use crate::child::{self, End};
use crate::folder::Folder;
use crate::options::{Kept, Options};
use crate::plan::{plan, Task};
use crate::progress::{clock, Progress};
use crate::{controls, reports, SuiteError};
use clap::Parser;
use record::ResultFile;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Runs the suite with this process's arguments.
pub fn main() -> ExitCode {
    let options = Options::parse();
    // Paths of programs built with this one are relative to where Bazel starts it.
    let built = built_with_this_program();
    let entered = workspace::enter_user_folder().map_err(SuiteError::new);
    match entered.and_then(|()| run(options, built?)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            workspace::tell!("suite: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut options: Options, built: Vec<PathBuf>) -> Result<bool, SuiteError> {
    // A run can be resumed from any folder with its original path.
    let roofs = options.kept.roofs.take().map(std::path::absolute);
    options.kept.roofs = roofs.transpose().map_err(SuiteError::new)?;
    let saved = match &options.resume {
        None => None,
        Some(path) => {
            let (folder, kept) = Folder::open(path)?;
            if options.kept != Kept::default() && options.kept != kept {
                return Err(SuiteError(format!(
                    "--resume uses the original options of {}; leave out any others",
                    folder.path().display()
                )));
            }
            Some((folder, kept))
        }
    };
    let (benches, roofline) = programs(&options.benches, built)?;
    let (folder, saved) = saved.unzip();
    let (out, max_minutes, dry_run) = (options.out.clone(), options.max_minutes, options.dry_run);
    let kept = options.kept_or(saved);
    let (tasks, without) = plan(&benches, &kept)?;
    for reason in &without {
        workspace::tell!("left out: {reason}");
    }
    for task in &tasks {
        workspace::tell!(
            "{}: {} on {}",
            task.name,
            record::count_text(task.workloads, "workload"),
            task.device.name
        );
    }
    if dry_run {
        return Ok(true);
    }
    let folder = match folder {
        Some(folder) => folder,
        None => Folder::create(out.as_deref(), &tasks[0].device, &kept)?,
    };
    workspace::tell!("writing into {}", folder.path().display());
    let start = Instant::now();
    let (sound, interrupted) = run_tasks(&tasks, &kept, max_minutes, roofline, &folder)?;
    let done: Vec<PathBuf> = tasks
        .iter()
        .map(|task| result_of(&folder, task))
        .filter(|path| path.exists())
        .collect();
    if done.is_empty() {
        return Err(SuiteError(
            "no bench wrote a result; see the logs".to_owned(),
        ));
    }
    workspace::say!("{}", reports::write(&folder, &done)?.trim_end());
    let complaint = match kept.protocol {
        Some(_) => controls::complaint(&read_all(&done)?),
        None => None,
    };
    workspace::tell!(
        "{} in {}: report.html, summary.md, rows.csv, results.json",
        folder.path().display(),
        clock(start.elapsed().as_secs_f64())
    );
    if interrupted {
        workspace::tell!(
            "interrupted; continue with --resume {}",
            folder.path().display()
        );
    }
    if let Some(complaint) = &complaint {
        workspace::tell!("suite: {complaint}");
    }
    let whole = !interrupted && done.len() == tasks.len();
    Ok(sound && whole && complaint.is_none())
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<ResultFile>, SuiteError> {
    let files = paths.iter().map(|path| record::read_json(path));
    Ok(files.collect::<Result<_, _>>()?)
}

/// Runs one bench after another; returns whether all rows are sound and whether it was interrupted.
fn run_tasks(
    tasks: &[Task],
    kept: &Kept,
    max_minutes: Option<f64>,
    roofline: Option<PathBuf>,
    folder: &Folder,
) -> Result<(bool, bool), SuiteError> {
    let start = Instant::now();
    let mut more = kept.bench_arguments();
    let processes = kept.protocol.map_or(1, |preset| preset.processes());
    let device = &tasks[0].device;
    match (&kept.roofs, roofline) {
        _ if device.emulated => {
            workspace::tell!("no roofs: the device is emulated, and nothing is timed there")
        }
        (Some(path), _) => more.extend(["--roofs".to_owned(), path.display().to_string()]),
        (None, Some(program)) => {
            child::roofs(&program, &device.kind, folder)?;
            let path = folder.file("roofline.json");
            more.extend(["--roofs".to_owned(), path.display().to_string()]);
        }
        (None, None) => workspace::tell!("no bench_roofline: rows will have no share of roof"),
    }
    let mut left: usize = tasks.iter().map(|task| task.workloads).sum();
    let mut progress = Progress::new(left * processes);
    let mut sound = true;
    for task in tasks {
        let earlier = record::read_json(&result_of(folder, task)).ok();
        if earlier.is_some_and(|file| file.meta.complete) {
            workspace::tell!("{}: complete", task.name);
            progress.skip(task.workloads * processes);
            left -= task.workloads;
            continue;
        }
        let mut options = more.clone();
        if let Some(minutes) = max_minutes {
            // Time that earlier benches did not need goes to the rest.
            let spent = start.elapsed().as_secs_f64() / 60.0;
            let share = (minutes - spent) * task.workloads as f64 / left.max(1) as f64;
            let share = share.max(0.001);
            options.extend(["--max-minutes".to_owned(), format!("{share:.4}")]);
        }
        left -= task.workloads;
        match child::run(task, &options, folder, &mut progress)? {
            End::Sound => {}
            End::Failed => sound = false,
            End::Interrupted => return Ok((sound, true)),
        }
    }
    // Rows of an earlier part count too.
    for task in tasks {
        if let Ok(file) = record::read_json(&result_of(folder, task)) {
            sound &= !file.rows.iter().any(|row| row.status.is_failure());
        }
    }
    Ok((sound, false))
}

fn result_of(folder: &Folder, task: &Task) -> PathBuf {
    folder.file(&format!("{}.json", task.name))
}

/// The benches as given, as built with this program, or as found next to it; and bench_roofline, which nobody has to
/// name.
fn programs(
    given: &[PathBuf],
    built: Vec<PathBuf>,
) -> Result<(Vec<PathBuf>, Option<PathBuf>), SuiteError> {
    let found = match built.is_empty() {
        true => beside_this_program()?,
        false => built,
    };
    let is_roofline = |path: &PathBuf| path.ends_with("bench_roofline");
    let (mut roofline, mut benches): (Vec<PathBuf>, Vec<PathBuf>) =
        found.into_iter().partition(is_roofline);
    if !given.is_empty() {
        let given: Vec<PathBuf> = given.iter().map(existing).collect::<Result<_, _>>()?;
        let (named, others): (Vec<PathBuf>, _) = given.into_iter().partition(is_roofline);
        benches = others;
        roofline.splice(..0, named);
    }
    if benches.is_empty() {
        return Err(SuiteError(
            "no bench_* programs found; name them with --bench, or put them next to this one"
                .to_owned(),
        ));
    }
    Ok((benches, roofline.into_iter().next()))
}

/// The benches that Bazel built with this program; none without Bazel.
fn built_with_this_program() -> Result<Vec<PathBuf>, SuiteError> {
    let built = std::env::var("SUITE_BENCHES").unwrap_or_default();
    built.split_whitespace().map(existing).collect()
}

/// Makes the path absolute but keeps links: a bench looks for its runfiles next to the name it is called by.
fn existing(path: impl AsRef<Path>) -> Result<PathBuf, SuiteError> {
    let path = path.as_ref();
    let found = path.metadata().and_then(|_| std::path::absolute(path));
    found.map_err(|error| SuiteError(format!("{}: {error}", path.display())))
}

fn beside_this_program() -> Result<Vec<PathBuf>, SuiteError> {
    let program = std::env::current_exe().map_err(SuiteError::new)?;
    let folder = program.parent().unwrap_or(&program);
    let entries = std::fs::read_dir(folder).map_err(SuiteError::new)?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            name.starts_with("bench_") && !name.contains('.') && path.is_file()
        })
        .collect();
    found.sort();
    Ok(found)
}
