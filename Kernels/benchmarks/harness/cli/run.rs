//! Dispatches the command line: a measurement, a listing, a profile, or a worker.

use std::process::ExitCode;

use contender::Problem;
use device::Cache;

use crate::erased::AnyBench;
use crate::measure::measure;
use crate::options::{CacheChoice, Options};
use crate::selection::Selection;
use crate::shell::{print, FAILED, USAGE};
use crate::{export, listing, missing, planners, profile, watch, worker, Bench, UsageError};

/// Runs a benchmark with this process's arguments; a bench's `main` is just this call.
pub fn run<P: Problem>(bench: Bench<P>) -> ExitCode {
    start(&bench.into())
}

/// The same for a benchmark whose operation the user brings: see [`crate::OwnOperation`].
pub fn run_own<P: Problem>(bench: Bench<P>) -> ExitCode {
    start(&AnyBench {
        takes_operation: true,
        ..bench.into()
    })
}

fn start(bench: &AnyBench) -> ExitCode {
    // Before anything else is set up: a stranger's library is loaded next.
    if std::env::args().nth(1).as_deref() == Some(guest::ARGUMENT) {
        return guest::serve();
    }
    if let Err(error) = workspace::enter_user_folder() {
        workspace::tell!("{}: {error}", bench.name);
        return ExitCode::from(USAGE);
    }
    let arguments: Vec<String> = std::env::args().collect();
    run_any(bench, &arguments)
}

/// The same with explicit arguments, of which the first is the program's name.
pub fn run_with_arguments<P: Problem>(bench: Bench<P>, arguments: Vec<String>) -> ExitCode {
    run_any(&bench.into(), &arguments)
}

fn run_any(bench: &AnyBench, arguments: &[String]) -> ExitCode {
    let options = match Options::parse_for(bench, arguments) {
        Ok(options) => options,
        Err(error) => {
            // Help goes to standard output, errors to standard error; a closed pipe does not matter.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match dispatch(bench, &options, arguments) {
        Ok(code) => code,
        Err(UsageError(message)) => {
            workspace::tell!("{}: {message}", bench.name);
            ExitCode::from(USAGE)
        }
    }
}

fn dispatch(
    bench: &AnyBench,
    options: &Options,
    arguments: &[String],
) -> Result<ExitCode, UsageError> {
    if let Some(shell) = options.instead.completions {
        let mut command = Options::command_for(bench);
        clap_complete::generate(shell, &mut command, bench.name, &mut std::io::stdout());
        return Ok(ExitCode::SUCCESS);
    }
    if options.instead.watch {
        return watch::watch(options, arguments);
    }
    let selection = Selection::new(bench, options)?;
    if options.worker {
        return worker::serve(&selection, options);
    }
    if options.planner {
        return planners::serve(&selection);
    }
    if options.instead.list {
        print(&listing::list(bench, &selection));
        return Ok(ExitCode::SUCCESS);
    }
    if options.instead.list_json {
        return Ok(match listing::list_json(bench, &selection) {
            Ok(text) => {
                print(&text);
                ExitCode::SUCCESS
            }
            Err(error) => {
                workspace::tell!("{}: {error}", bench.name);
                ExitCode::from(FAILED)
            }
        });
    }
    if options.instead.dry_run {
        print(&listing::dry_run(&selection, options));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &options.instead.export {
        let file = export::workload_file(bench.name, &selection)?;
        let text = file.to_json().map_err(UsageError::new)?;
        record::write_atomic(path, text.as_bytes()).map_err(UsageError::new)?;
        let count = record::count_text(file.workloads.len(), "workload");
        workspace::tell!("{count} of {} in {}", file.suite, path.display());
        return Ok(ExitCode::SUCCESS);
    }
    if options.what.build_missing {
        missing::build(&selection)?;
    }
    if options.instead.profile {
        return Ok(run_profile(bench.name, &selection, options));
    }
    measure(bench, &selection, options, arguments)
}

fn run_profile(program: &str, selection: &Selection, options: &Options) -> ExitCode {
    let cache = match options.how.cache {
        CacheChoice::Cold => Cache::Cold,
        CacheChoice::Hot => Cache::Hot,
    };
    match profile::profile(selection, options.how.seed, cache) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures
                .iter()
                .for_each(|failure| workspace::tell!("{program}: {failure}"));
            ExitCode::from(FAILED)
        }
        Err(failure) => {
            workspace::tell!("{program}: {failure}");
            ExitCode::from(FAILED)
        }
    }
}
