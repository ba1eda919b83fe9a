//! The flow of a measurement: start a worker, go through the problems, write and print the result.

use std::io::{IsTerminal, Read};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use record::{ResultFile, Row, TableStyle};
use stats::RatioOptions;
use timing::Roofs;

use crate::erased::AnyBench;
use crate::jobs::{self, Job, Places};
use crate::ledger::Ledger;
use crate::options::{is_emulation, Options};
use crate::output::Outputs;
use crate::progress::Progress;
use crate::protocol::{Machine, Task};
use crate::resume;
use crate::rows::{compare, rows, RowContext};
use crate::selection::{fingerprint, Selection};
use crate::shell::{print, FAILED, SIGNALLED};
use crate::supervisor::{Supervisor, SupervisorError};
use crate::{again, meta, repro, roofs, utc, UsageError};

/// What all problems of a run share.
struct Run<'a> {
    bench: &'a AnyBench,
    selection: &'a Selection,
    options: &'a Options,
    machine: Machine,
    roofs: Roofs,
    ratio: RatioOptions,
}

/// Measures everything selected, then writes and prints the result.
pub fn measure(
    bench: &AnyBench,
    selection: &Selection,
    options: &Options,
    arguments: &[String],
) -> Result<ExitCode, UsageError> {
    let mut options = options.clone();
    let mut workers = arguments.to_vec();
    if options.how.entropy.is_none() {
        let drawn = entropy().map_err(|error| {
            UsageError(format!("cannot read /dev/urandom: {error}; use --entropy"))
        })?;
        options.how.entropy = Some(drawn);
        workers.push(format!("--entropy={drawn}"));
    }
    let options = &options;
    let plan = options.plan_for(selection.choices.device, bench.arch)?;
    let mut outputs = Outputs::new(&options.output, bench.name)?;
    let timeout = options.timeout(is_emulation(selection.choices.device, bench.arch));
    let (mut supervisor, machine) = match start(timeout, &workers, selection.strangers()) {
        Ok(started) => started,
        Err(error) => return Ok(give_up(bench.name, &error)),
    };
    let roofs = roofs::load(options.how.roofs.as_deref(), &machine)?;
    let ratio = RatioOptions {
        margin: plan.rule.margin,
        seed: plan.seed,
        ..Default::default()
    };
    let summary = roofs::summary(&roofs);
    let meta = meta::begin(bench, arguments, options, &plan, &machine, roofs);
    let mut file = ResultFile {
        meta,
        rows: Vec::new(),
    };
    let left = jobs::left(selection, options, &mut file)?;
    let run = Run {
        bench,
        selection,
        options,
        machine,
        roofs: summary,
        ratio,
    };
    let measured = run.jobs(&left, &mut supervisor, &mut file, &mut outputs);
    drop(supervisor);
    file.meta.ended_at = Some(utc::now());
    file.meta.complete = measured.as_ref().is_ok_and(Vec::is_empty);
    if let Ok(cut) = &measured {
        if !cut.is_empty() {
            let total = selection.problems.len();
            let done = jobs::finished(selection, cut);
            let cut = format!("{} after {done} of {total} workloads", resume::CUT);
            workspace::tell!("{}: {cut}", bench.name);
            file.meta.warnings.push(cut);
        }
    }
    let stopped_by = measured.err();
    print(&record::to_table(
        &file,
        TableStyle::for_stdout(terminal_width()),
    ));
    let program = arguments.first().map_or(bench.name, String::as_str);
    print(&again::commands(&file.rows, program));
    let written = outputs.write(&file);
    if let Err(error) = &written {
        workspace::tell!(
            "{}: {error}; free up space or choose another folder, then run again",
            bench.name
        );
    }
    Ok(match stopped_by {
        Some(error) => give_up(bench.name, &error),
        None if written.is_err() => ExitCode::from(FAILED),
        None => exit_code(&file.rows),
    })
}

/// A number that no contender can know beforehand, small enough for every reader of JSON.
fn entropy() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes) >> 11)
}

fn start(
    timeout: Duration,
    arguments: &[String],
    strangers: Vec<String>,
) -> Result<(Supervisor, Machine), SupervisorError> {
    let mut supervisor = Supervisor::new(arguments, timeout, strangers)?;
    let machine = supervisor.start()?;
    Ok((supervisor, machine))
}

impl Run<'_> {
    /// Adds the rows of each job to the file, and returns those that there was no time for.
    fn jobs(
        &self,
        left: &[Job],
        supervisor: &mut Supervisor,
        file: &mut ResultFile,
        outputs: &mut Outputs,
    ) -> Result<Vec<Job>, SupervisorError> {
        let mut cut: Vec<Job> = Vec::new();
        let mut running = 0;
        let mut progress = Progress::new(left.len());
        let mut ledger = Ledger::new(file.meta.spent_s.clone());
        let mut places = Places::of(&file.rows);
        let start = Instant::now();
        for (count, &job) in left.iter().enumerate() {
            let unfinished = cut.iter().any(|earlier| earlier.problem == job.problem);
            if unfinished || self.is_late(start, job) {
                cut.push(job);
                continue;
            }
            if running != job.process {
                running = job.process;
                supervisor.next_process(running)?;
            }
            let problem = &*self.selection.problems[job.problem];
            let contenders = self.selection.contenders_of(job.problem);
            let identities: Vec<_> = contenders.map(|contender| contender.identity()).collect();
            let coming = left[count + 1..].iter();
            let coming = coming.take_while(|next| next.process == job.process);
            let task = Task {
                problem: job.problem,
                expected: fingerprint(problem),
                process: job.process,
                contenders: identities.iter().map(|each| each.name.clone()).collect(),
                coming: coming.map(|next| next.problem).collect(),
            };
            progress.begin(self.title(job));
            let outcomes = supervisor.measure(&task, &mut |step| {
                ledger.step(step);
                progress.step(step);
            })?;
            ledger.end();
            file.meta.spent_s = ledger.seconds();
            let context = self.row_context();
            let rows = rows(problem, &identities, &outcomes, &context);
            progress.rows(&rows);
            places.add(rows, &mut file.rows, |race| {
                compare(race, &context, |partners| {
                    let device = self.selection.choices.device;
                    repro::command(self.bench.name, self.options, device, problem, partners)
                });
            });
            if let Err(error) = outputs.checkpoint(file) {
                progress.say(&format!("warning: {error}; continuing to measure"));
            }
        }
        Ok(cut)
    }

    fn title(&self, job: Job) -> String {
        let problem = &self.selection.problems[job.problem];
        let (op, dtype, workload) = (problem.op(), problem.dtype(), problem.workload());
        let title = format!("{op} {dtype} {}/{}", workload.suite, workload.name);
        match self.options.processes() {
            1 => title,
            all => format!("{title} (process {} of {all})", job.process + 1),
        }
    }

    /// Processes share the time evenly, so that all of them get as far as the first.
    fn is_late(&self, start: Instant, job: Job) -> bool {
        let share = (job.process + 1) as f64 / self.options.processes() as f64;
        let limit = self.options.how.max_minutes;
        limit.is_some_and(|minutes| start.elapsed().as_secs_f64() >= 60.0 * minutes * share)
    }

    fn row_context(&self) -> RowContext<'_> {
        RowContext {
            arch: &self.machine.info.arch,
            roofs: &self.roofs,
            baseline: self.options.what.baseline.as_deref(),
            ratio: self.ratio,
            given: self.selection.choices.given.is_some(),
        }
    }
}

fn exit_code(rows: &[Row]) -> ExitCode {
    match rows.iter().any(|row| row.status.is_failure()) {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    }
}

fn give_up(program: &str, error: &SupervisorError) -> ExitCode {
    workspace::tell!("{program}: {error}");
    match error {
        SupervisorError::Signal(signal) => ExitCode::from(SIGNALLED + *signal as u8),
        _ => ExitCode::from(FAILED),
    }
}

/// Terminal width, from stty: std cannot tell, and it is not worth an `unsafe` call.
fn terminal_width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let terminal = std::fs::File::open("/dev/tty").ok()?;
    let size = Command::new("stty")
        .arg("size")
        .stdin(terminal)
        .output()
        .ok()?;
    let text = String::from_utf8(size.stdout).ok()?;
    text.split_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .filter(|columns| *columns > 0)
}
