//! Runs and checks PTX on the CPU: no GPU, no driver.

mod launch;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use machine::{Module, Schedule};

/// Runs kernels in PTX for sm_90a and sm_100a in an interpreter, and says what is wrong with them.
#[derive(Parser)]
#[command(name = "ptx")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs a kernel and compares its buffers with what the launch expects of them.
    Run {
        file: PathBuf,
        /// JSON: kernel, grid, block, buffers and arguments; see docs/EMULATION.md.
        #[arg(long)]
        launch: PathBuf,
        /// When asynchronous work lands.
        #[arg(long, value_enum, default_value = "all")]
        schedule: Kind,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Threads of this machine; several make the order of atomics differ from run to run.
        #[arg(long, default_value_t = 1)]
        workers: usize,
        /// Where to write what ran, as JSON.
        #[arg(long)]
        counters: Option<PathBuf>,
    },
    /// Parses files and lists every instruction form that the interpreter does not know.
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Lists the instruction forms of files, how often each stands there, and whether it is known.
    Forms {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    AtOnce,
    Random,
    Late,
    All,
}

impl Kind {
    fn schedules(self, seed: u64) -> Vec<Schedule> {
        match self {
            Self::AtOnce => vec![Schedule::AtOnce],
            Self::Random => vec![Schedule::Random { seed }],
            Self::Late => vec![Schedule::Late { seed }],
            Self::All => vec![
                Schedule::AtOnce,
                Schedule::Random { seed },
                Schedule::Late { seed },
            ],
        }
    }
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("ptx: {error}");
            ExitCode::FAILURE
        }
    }
}

fn load(file: &Path) -> Result<Module, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Module::load(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn run(cli: Cli) -> Result<ExitCode, String> {
    workspace::enter_user_folder().map_err(|error| error.to_string())?;
    match cli.command {
        Task::Run {
            file,
            launch,
            schedule,
            seed,
            workers,
            counters,
        } => {
            let module = load(&file)?;
            let launch = launch::Description::read(&launch)?;
            let mut reports = Vec::new();
            for schedule in schedule.schedules(seed) {
                let outcome = launch.run(&module, schedule, workers)?;
                println!(
                    "{schedule:?}: {} thread instructions; {}",
                    outcome.report.thread_instructions, outcome.verdict
                );
                reports.push((schedule, outcome.report));
            }
            if let Some(path) = counters {
                fs::write(&path, report::json(&reports))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Check { files } => {
            let mut unknown = 0;
            let mut kernels = 0;
            for file in &files {
                let module = load(file)?;
                for kernel in module.kernels() {
                    kernels += 1;
                    for form in module
                        .unknown_forms(kernel)
                        .map_err(|error| error.to_string())?
                    {
                        println!(
                            "{}: {}: {}: {}",
                            file.display(),
                            form.kernel,
                            form.place,
                            form.reason
                        );
                        unknown += 1;
                    }
                }
            }
            println!(
                "{} files, {kernels} kernels, {unknown} unknown instructions",
                files.len()
            );
            Ok(if unknown == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        Task::Forms { files } => {
            let modules = files
                .iter()
                .map(|file| load(file))
                .collect::<Result<Vec<_>, _>>()?;
            print!("{}", report::forms(&modules)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}
