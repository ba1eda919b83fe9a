//! The flow of a measurement: start a worker, go through the problems, write and print the result.

use std::io::IsTerminal;
use std::process::{Command, ExitCode};
use std::time::Duration;

use contender::Problem;
use report::{ResultFile, Row, TableStyle};
use stats::RatioOptions;
use timing::Roofs;

use crate::ledger::Ledger;
use crate::options::Options;
use crate::output::Outputs;
use crate::progress::Progress;
use crate::protocol::Machine;
use crate::rows::{rows, RowContext};
use crate::run::{print, FAILED, SIGNALLED};
use crate::selection::Selection;
use crate::supervisor::{Supervisor, SupervisorError};
use crate::{meta, repro, roofs, utc, Bench, UsageError};

/// What stays the same over the problems of a run.
struct Run<'a, P: Problem + ?Sized> {
    bench: &'a Bench<P>,
    selection: &'a Selection<P>,
    options: &'a Options,
    machine: Machine,
    roofs: Roofs,
    ratio: RatioOptions,
}

/// Measures everything that is selected, and writes and prints the result.
pub fn measure<P: Problem + ?Sized>(
    bench: &Bench<P>,
    selection: &Selection<P>,
    options: &Options,
    arguments: &[String],
) -> Result<ExitCode, UsageError> {
    let plan = options.plan(selection.choices.device)?;
    let mut outputs = Outputs::new(&options.output, bench.name)?;
    let (mut supervisor, machine) = match start(options, arguments) {
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
    let run = Run {
        bench,
        selection,
        options,
        machine,
        roofs: summary,
        ratio,
    };
    let stopped_by = run
        .all_problems(&mut supervisor, &mut file, &mut outputs)
        .err();
    drop(supervisor);
    file.meta.ended_at = Some(utc::now());
    file.meta.complete = stopped_by.is_none();
    print(&report::to_table(
        &file,
        TableStyle::for_stdout(terminal_width()),
    ));
    let written = outputs.write(&file);
    if let Err(error) = &written {
        eprintln!(
            "{}: {error}; free space or choose another place, then run again",
            bench.name
        );
    }
    Ok(match stopped_by {
        Some(error) => give_up(bench.name, &error),
        None if written.is_err() => ExitCode::from(FAILED),
        None => exit_code(&file.rows),
    })
}

fn start(
    options: &Options,
    arguments: &[String],
) -> Result<(Supervisor, Machine), SupervisorError> {
    let timeout = Duration::from_secs(options.how.timeout_s);
    let mut supervisor = Supervisor::new(arguments, timeout)?;
    let machine = supervisor.start()?;
    Ok((supervisor, machine))
}

impl<P: Problem + ?Sized> Run<'_, P> {
    /// Adds the rows of one problem after the other to the file.
    fn all_problems(
        &self,
        supervisor: &mut Supervisor,
        file: &mut ResultFile,
        outputs: &mut Outputs,
    ) -> Result<(), SupervisorError> {
        let contenders = &self.selection.contenders;
        let names: Vec<String> = contenders
            .iter()
            .map(|contender| contender.identity().name.clone())
            .collect();
        let mut progress = Progress::new(self.selection.problems.len());
        let mut ledger = Ledger::new();
        for (index, problem) in self.selection.problems.iter().enumerate() {
            progress.begin(title(&**problem));
            let outcomes = supervisor.measure(index, &names, &mut |step| {
                ledger.step(step);
                progress.step(step);
            })?;
            ledger.end();
            file.meta.spent_s = ledger.seconds();
            let context = self.row_context();
            let rows = rows(&**problem, contenders, &outcomes, &context, |partners| {
                let device = self.selection.choices.device;
                repro::command(self.bench.name, self.options, device, &**problem, partners)
            });
            progress.rows(&rows);
            file.rows.extend(rows);
            if let Err(error) = outputs.checkpoint(file) {
                progress.say(&format!("warning: {error}; measuring goes on"));
            }
        }
        Ok(())
    }

    fn row_context(&self) -> RowContext<'_> {
        RowContext {
            arch: &self.machine.info.arch,
            roofs: &self.roofs,
            baseline: self.options.what.baseline.as_deref(),
            ratio: self.ratio,
        }
    }
}

fn title<P: Problem + ?Sized>(problem: &P) -> String {
    let workload = problem.workload();
    format!(
        "{} {} {}/{}",
        problem.op(),
        problem.dtype(),
        workload.suite,
        workload.name
    )
}

fn exit_code(rows: &[Row]) -> ExitCode {
    match rows.iter().any(|row| row.status.is_failure()) {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    }
}

fn give_up(program: &str, error: &SupervisorError) -> ExitCode {
    eprintln!("{program}: {error}");
    match error {
        SupervisorError::Signal(signal) => ExitCode::from(SIGNALLED + *signal as u8),
        _ => ExitCode::from(FAILED),
    }
}

/// Columns of the terminal, asked from stty: std does not know, and no `unsafe` call is worth it.
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
