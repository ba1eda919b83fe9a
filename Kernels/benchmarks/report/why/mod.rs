//! Why rows were lost: both sides under ncu, side by side.
//!
//! The harness says who is faster. What the hardware did meanwhile (stalls, pipes, bytes, clocks) says only a profiler,
//! which slows kernels down, so it runs apart from any measurement.

mod csv;

pub use csv::{read_csv, Profile};

use crate::repro::Repro;
use crate::{Collection, ReportingError, Run};
use children::Leash;
use record::{losses, ContenderKind, DeviceKind, Row};
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The same for every kernel and card: each names what the card at hand can count.
const SECTIONS: [&str; 6] = [
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "WarpStateStats",
    "Occupancy",
    "LaunchStats",
];

#[derive(Debug, Clone)]
pub struct WhyOptions {
    /// Folder of the bench programs.
    pub programs: PathBuf,
    /// Lost rows to profile, worst first.
    pub rows: usize,
    /// The profiler.
    pub ncu: PathBuf,
    /// A profile that takes longer is stopped.
    pub limit: Duration,
}

/// A lost row and both profiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    pub title: String,
    pub ours: (String, Profile),
    pub other: (String, Profile),
}

/// Profiles the worst losses; `tell` hears of each before it starts.
pub fn why(
    collection: &Collection,
    options: &WhyOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Loss>, ReportingError> {
    let mut lost: Vec<(&Run, &Row, f64, &str)> = collection
        .runs
        .iter()
        .flat_map(|run| {
            losses(&run.file)
                .into_iter()
                .filter(|(row, _)| is_our_fastest(row, &run.file.rows))
                .map(move |(row, speedup)| (run, row, speedup))
        })
        .map(|(run, row, speedup)| (run, row, speedup.ratio, &*speedup.baseline))
        .collect();
    lost.sort_by(|left, right| left.2.total_cmp(&right.2));
    lost.truncate(options.rows);
    if lost.is_empty() {
        return Err(ReportingError::Usage(
            "no row is lost, so there is nothing to explain".to_owned(),
        ));
    }
    let explain = |(run, row, ratio, other): (&Run, &Row, f64, &str)| {
        if run.file.meta.device.kind != DeviceKind::Cuda {
            let device = &run.file.meta.device.name;
            return Err(format!(
                "ncu profiles GPUs, but the row was measured on '{device}'"
            ));
        }
        let (op, dtype, name) = (&row.op, &row.dtype, &row.contender.name);
        let workload = format!("{}/{}", row.workload.suite, row.workload.name);
        let ratio = record::ratio_text(ratio);
        let title = format!("{op} {dtype} {workload}: {name} {ratio} of {other}");
        tell(&title);
        let of = |contender: &str| {
            Ok::<_, String>((contender.to_owned(), profile(run, row, contender, options)?))
        };
        Ok(Loss {
            ours: of(name)?,
            other: of(other)?,
            title,
        })
    };
    lost.into_iter()
        .map(explain)
        .collect::<Result<_, _>>()
        .map_err(ReportingError::Usage)
}

/// Whether nobody of ours was faster in the same race: a kernel that we would not choose explains nothing.
fn is_our_fastest(row: &Row, rows: &[Row]) -> bool {
    let time_us = |row: &Row| row.time.as_ref().map(|time| time.median_us);
    let beats = |other: &Row| {
        let same_race =
            other.op == row.op && other.dtype == row.dtype && other.workload == row.workload;
        let times = time_us(other).zip(time_us(row));
        same_race
            && other.contender.kind == ContenderKind::Own
            && times.is_some_and(|(theirs, own)| theirs < own)
    };
    row.contender.kind == ContenderKind::Own && !rows.iter().any(beats)
}

/// Runs the bench with one contender under ncu. As in verify, the row decides options, not what is started.
fn profile(run: &Run, row: &Row, contender: &str, options: &WhyOptions) -> Result<Profile, String> {
    let repro = Repro::of(row, run.file.meta.device.kind)?;
    if !options.programs.join(&repro.program).is_file() {
        return Err(format!(
            "no {} in {}; build it, or give its folder with --programs",
            repro.program,
            options.programs.display()
        ));
    }
    let scratch = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}"))?;
    let (output, log) = (scratch.path().join("ncu.csv"), scratch.path().join("log"));
    let create = |path: &Path| File::create(path).map_err(|error| error.to_string());
    let ncu = options.ncu.display();
    let mut child = repro
        .profile(
            &options.ncu,
            &SECTIONS,
            &options.programs,
            contender,
            scratch.path(),
        )?
        .stdin(Stdio::null())
        .stdout(create(&output)?)
        .stderr(create(&log)?)
        .leash()
        .spawn()
        .map_err(|error| {
            format!("cannot start {ncu}: {error}; install Nsight Compute, or give it with --ncu")
        })?;
    let status = children::wait_until(&mut child, Instant::now() + options.limit);
    let Ok(Some(status)) = status else {
        children::end(&mut child);
        let limit_s = options.limit.as_secs();
        return Err(format!(
            "ncu took longer than {limit_s} s on {contender}; see --limit-s"
        ));
    };
    let read = |path: &Path| {
        record::read_bounded(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read(&output).map_err(|error| error.to_string())?;
    read_csv(&text).map_err(|problem| {
        let said = read(&log).unwrap_or_default() + &text;
        let last = said
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("nothing");
        format!(
            "ncu ended with {status} on {contender}: {problem}; it said: {}",
            record::printable(last)
        )
    })
}

/// The losses as Markdown.
pub fn why_text(losses: &[Loss]) -> String {
    let mut text = String::from(
        "# Why rows were lost\n\nUnder ncu, at the clock that the card chose, caches as the bench leaves \
         them. Kernels of a contender are summed; shares and rates are means weighted by their time.\n",
    );
    for loss in losses {
        let ((ours, own), (other, others)) = (&loss.ours, &loss.other);
        let mut push =
            |line: std::fmt::Arguments| writeln!(text, "{line}").expect("a String takes any text");
        push(format_args!(
            "\n## {}\n\n| metric | unit | {ours} | {other} |\n|---|---|---:|---:|",
            loss.title
        ));
        push(format_args!(
            "| kernels | | {} | {} |",
            own.kernels.len(),
            others.kernels.len()
        ));
        for (metric, unit, value) in own.metrics() {
            let theirs = others.value(metric).map_or("-".to_owned(), text_of);
            push(format_args!(
                "| {metric} | {unit} | {} | {theirs} |",
                text_of(value)
            ));
        }
    }
    text
}

fn text_of(value: f64) -> String {
    record::significant(value, 4)
}
