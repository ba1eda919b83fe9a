//! Why rows were lost: both sides under ncu, side by side.
//!
//! The harness says who is faster. What the hardware did meanwhile (stalls, pipes, bytes, clocks) says only a profiler,
//! which slows kernels down, so it runs apart from any measurement.

mod account;
mod csv;

pub use account::Account;
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
    pub which: Which,
    /// The profiler.
    pub ncu: PathBuf,
    /// A profile that takes longer is stopped.
    pub limit: Duration,
}

#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// So many.
    Worst(usize),
    /// All of which less than this is left.
    Below(f64),
}

/// A lost row, and both profiles or why there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Operation, type and workload.
    pub row: String,
    pub ours: String,
    pub other: String,
    /// The other's time over ours, as it was raced.
    pub ratio: f64,
    pub profiles: Result<(Profile, Profile), String>,
}

impl Loss {
    fn title(&self) -> String {
        let Loss {
            row, ours, other, ..
        } = self;
        format!(
            "{row}: {ours} {} of {other}",
            record::ratio_text(self.ratio)
        )
    }
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
    match options.which {
        Which::Worst(rows) => lost.truncate(rows),
        Which::Below(ratio) => lost.retain(|(.., is, _)| *is < ratio),
    }
    if lost.is_empty() {
        return Err(ReportingError::Usage(
            "no such row is lost, so there is nothing to explain".to_owned(),
        ));
    }
    let explain = |(run, row, ratio, other): (&Run, &Row, f64, &str)| {
        let (op, dtype, name) = (&row.op, &row.dtype, &row.contender.name);
        let mut loss = Loss {
            row: format!("{op} {dtype} {}/{}", row.workload.suite, row.workload.name),
            ours: name.clone(),
            other: other.to_owned(),
            ratio,
            profiles: Err(String::new()),
        };
        tell(&loss.title());
        loss.profiles = profile(run, row, [name, other], options);
        if let Err(problem) = &loss.profiles {
            tell(problem);
        }
        loss
    };
    let losses: Vec<Loss> = lost.into_iter().map(explain).collect();
    match losses.iter().find_map(|loss| loss.profiles.as_ref().err()) {
        Some(problem) if losses.iter().all(|loss| loss.profiles.is_err()) => {
            Err(ReportingError::Usage(problem.clone()))
        }
        _ => Ok(losses),
    }
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

/// Runs the bench with both contenders under ncu. As in verify, the row decides options, not what is started.
fn profile(
    run: &Run,
    row: &Row,
    contenders: [&str; 2],
    options: &WhyOptions,
) -> Result<(Profile, Profile), String> {
    if run.file.meta.device.kind != DeviceKind::Cuda {
        let device = &run.file.meta.device.name;
        return Err(format!(
            "ncu profiles GPUs, but the row was measured on '{device}'"
        ));
    }
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
            &contenders,
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
        return Err(format!("ncu took longer than {limit_s} s; see --limit-s"));
    };
    let read = |path: &Path| {
        record::read_bounded(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read(&output).map_err(|error| error.to_string())?;
    let both = read_csv(&text).and_then(|mut profiles| {
        let mut of = |contender: &str| {
            let range = format!(" {contender}");
            let at = profiles.iter().position(|it| it.range.ends_with(&range));
            at.map(|at| profiles.swap_remove(at))
                .ok_or(format!("no kernel of {contender} was profiled"))
        };
        Ok((of(contenders[0])?, of(contenders[1])?))
    });
    both.map_err(|problem| {
        let said = text + &read(&log).unwrap_or_default();
        // The table says nothing about what went wrong.
        let last = said
            .lines()
            .rfind(|line| !line.trim().is_empty() && !line.starts_with('"'))
            .unwrap_or("nothing");
        format!(
            "ncu ended with {status}: {problem}; it said: {}",
            record::printable(last)
        )
    })
}

/// The losses as Markdown: what bounds both sides, then all that was counted.
pub fn why_text(losses: &[Loss]) -> String {
    let mut text = String::from(
        "# Why rows were lost\n\nUnder ncu, at the clock that the card chose, with the caches that were raced. \
         Kernels of a contender are summed; shares and rates are means weighted by their time.\n\n",
    );
    let mut push =
        |line: std::fmt::Arguments| writeln!(text, "{line}").expect("a String takes any text");
    push(format_args!(
        "| row | raced | cycles | ours | rival | its |\n|---|---:|---:|---|---|---|"
    ));
    for loss in losses {
        let (row, other, raced) = (&loss.row, &loss.other, record::ratio_text(loss.ratio));
        match &loss.profiles {
            Ok((own, theirs)) => {
                let (own, theirs) = (Account::of(own), Account::of(theirs));
                push(format_args!(
                    "| {row} | {raced} | {} | {own} | {other} | {theirs} |",
                    theirs.cycles_over(&own)
                ));
            }
            Err(problem) => push(format_args!(
                "| {row} | {raced} | - | {} | {other} | - |",
                record::printable(problem)
            )),
        }
    }
    for loss in losses {
        let Ok((own, theirs)) = &loss.profiles else {
            continue;
        };
        push(format_args!(
            "\n## {}\n\n| metric | unit | {} | {} |\n|---|---|---:|---:|\n| kernels | | {} | {} |",
            loss.title(),
            loss.ours,
            loss.other,
            own.kernels,
            theirs.kernels
        ));
        for (metric, unit, value) in own.metrics() {
            let their_value = theirs.value(metric).map_or("-".to_owned(), text_of);
            push(format_args!(
                "| {metric} | {unit} | {} | {their_value} |",
                text_of(value)
            ));
        }
    }
    text
}

fn text_of(value: f64) -> String {
    record::significant(value, 4)
}
