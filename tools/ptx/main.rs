//! Runs and checks PTX on the CPU: no GPU, no driver.

mod argument;
mod bounds;
mod card;
mod coverage;
mod dtype;
mod files;
mod functions;
mod launch;
mod measured;
mod mutants;
mod mutate;
mod near;
mod rates;
mod replay;
mod report;
mod resources;
mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use launch::How;
use machine::{Module, Schedule, TensorLoads, Watch};
use rewriter::{Options, When};

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
        /// PTX.
        file: PathBuf,
        /// JSON: kernel, grid, block, buffers and arguments; see docs/EMULATION.md.
        #[arg(long)]
        launch: PathBuf,
        /// When asynchronous work lands.
        #[arg(long, value_enum, default_value = "all")]
        schedule: Kind,
        /// Of random schedules; for adversarial, the queue that is late, from 0 to 3.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Threads of this machine; several make the order of atomics differ from run to run.
        #[arg(long, default_value_t = 1)]
        workers: usize,
        /// Also look for accesses of shared, tensor and global memory that nothing orders.
        #[arg(long)]
        races: bool,
        /// Registers of tcgen05.ld hold their values at the first use, not after tcgen05.wait::ld alone.
        #[arg(long)]
        first_use: bool,
        /// Instructions of all threads of a cluster before it is given up.
        #[arg(long, default_value_t = LIMIT)]
        limit: u64,
        /// Where to write what ran, as JSON.
        #[arg(long)]
        counters: Option<PathBuf>,
    },
    /// Runs a kernel on this machine's GPU, with the launch that run takes.
    Card {
        /// PTX.
        file: PathBuf,
        /// As for run.
        #[arg(long)]
        launch: PathBuf,
    },
    /// Repeats recorded launches (RECORD_LAUNCHES) and compares what they wrote: on this machine's GPU, where kernels
    /// for sm_100a are rewritten if it is an H100 or H200, or in the interpreter.
    Replay {
        /// The folder that they were recorded in.
        folder: PathBuf,
        /// In the interpreter, not on the GPU.
        #[arg(long)]
        interpret: bool,
        /// Rewritten kernels do tensor cores' work when the thread that issued it waits, not at once.
        #[arg(long)]
        late: bool,
    },
    /// Plants faults in a kernel, one at a time, and lists those that its launch does not notice.
    Mutate {
        /// PTX.
        file: PathBuf,
        /// As for run; at least one buffer has values to expect.
        #[arg(long)]
        launch: PathBuf,
        /// Of random schedules.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Faults of each kind, spread over the lines that run.
        #[arg(long, default_value_t = 4)]
        per_kind: usize,
        /// As for run.
        #[arg(long)]
        first_use: bool,
    },
    /// Parses files and lists every instruction form that the interpreter does not know.
    Check {
        /// PTX.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Rewrites a file of sm_100a for sm_90a, with an emulation of what Hopper lacks.
    Rewrite {
        /// PTX for sm_100a.
        file: PathBuf,
        /// Where to write the file for sm_90a.
        #[arg(long, short)]
        output: PathBuf,
        /// Do tensor cores' work when the thread that issued it waits, not at once.
        #[arg(long)]
        late: bool,
    },
    /// Lists the forms of our kernels and the gates that executed each, from the gates' counters.json.
    Coverage {
        /// The gates' counters.json.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Lists how many of the faults that gates planted were noticed, and why the others were not, from the gates'
    /// mutants_*.json.
    Mutants {
        /// The gates' mutants_*.json.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Holds what the units of an H200 need for our Hopper kernels against measured times, as a table.
    Bounds {
        /// Result files of benches or suites, gzipped or not.
        #[arg(long, required = true)]
        results: Vec<PathBuf>,
        /// Rows of each operation, the longest first.
        #[arg(long, default_value_t = 8)]
        rows: usize,
        /// The gates' counters.json, built for sm_90a.
        #[arg(required = true)]
        counters: Vec<PathBuf>,
    },
    /// Lists what each unit of a multiprocessor needs for the kernels that gates counted, as tables.
    Units {
        /// What `ptxas -v` or `cuobjdump -res-usage` prints of the same kernels: adds a table of registers, spills,
        /// shared and tensor memory, blocks per SM and waits. A counted kernel that is not there is an error.
        #[arg(long)]
        usage: Vec<PathBuf>,
        /// Result files of an H200, gzipped or not: adds the times of our Hopper kernels.
        #[arg(long)]
        results: Vec<PathBuf>,
        /// The gates' counters.json.
        #[arg(required = true)]
        counters: Vec<PathBuf>,
    },
    /// Lists the instruction forms of files, how often each stands there, and whether it is known.
    Forms {
        /// PTX.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// More than a kernel needs whose end one waits for, and seconds of one that never ends.
const LIMIT: u64 = 1 << 30;

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    AtOnce,
    Random,
    Late,
    Adversarial,
    All,
}

impl Kind {
    fn schedules(self, seed: u64) -> Vec<Schedule> {
        match self {
            Self::AtOnce => vec![Schedule::AtOnce],
            Self::Random => vec![Schedule::Random { seed }],
            Self::Late => vec![Schedule::Late { seed }],
            Self::Adversarial => vec![Schedule::Adversarial { seed }],
            Self::All => {
                let first = [
                    Schedule::AtOnce,
                    Schedule::Random { seed },
                    Schedule::Late { seed },
                ];
                first.into_iter().chain(Schedule::ADVERSARIES).collect()
            }
        }
    }
}

fn tensor_loads(first_use: bool) -> TensorLoads {
    if first_use {
        TensorLoads::AtFirstUse
    } else {
        TensorLoads::AfterWait
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
    Module::load(&files::text(file)?).map_err(|error| format!("{}: {error}", file.display()))
}

fn when(late: bool) -> Options {
    Options {
        when: if late { When::Late } else { When::AtOnce },
        ..Options::default()
    }
}

fn rewrite(file: &Path, output: &Path, late: bool) -> Result<(), String> {
    let text = rewriter::rewrite(&files::text(file)?, &when(late))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    fs::write(output, text).map_err(|error| format!("{}: {error}", output.display()))
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
            races,
            first_use,
            limit,
            counters,
        } => {
            let module = load(&file)?;
            let launch = launch::Description::read(&launch)?;
            let mut reports = Vec::new();
            for schedule in schedule.schedules(seed) {
                let how = How {
                    schedule,
                    tensor_loads: tensor_loads(first_use),
                    workers,
                    races: if races { Watch::All } else { Watch::Off },
                    limit,
                };
                let outcome = launch.run(&module, how)?;
                println!(
                    "{schedule:?}: {} thread instructions, {}; {}",
                    outcome.report.counters.thread_instructions,
                    report::rate(&outcome.report),
                    outcome.agreement
                );
                reports.push((schedule, outcome.report));
            }
            if let Some(path) = counters {
                fs::write(&path, report::json(&reports))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Card { file, launch } => {
            let text = files::text(&file)?;
            let launch = launch::Description::read(&launch)?;
            let program = launch.program(&load(&file)?)?;
            let outcome = card::Card::open()?.run(&launch, &program, text.into_bytes())?;
            println!("{}, {:.3} s", outcome.agreement, outcome.time.as_secs_f64());
            Ok(ExitCode::SUCCESS)
        }
        Task::Replay {
            folder,
            interpret,
            late,
        } => {
            let on = if interpret {
                replay::On::Interpreter
            } else {
                replay::On::Card(card::Card::open()?)
            };
            let differ = replay::run(&folder, &on, &when(late))?;
            Ok(if differ == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        Task::Mutate {
            file,
            launch,
            seed,
            per_kind,
            first_use,
        } => {
            let text = files::text(&file)?;
            let launch = launch::Description::read(&launch)?;
            let schedules = Kind::All.schedules(seed);
            let loads = tensor_loads(first_use);
            let rows = mutate::run(&text, &launch, &schedules, loads, per_kind)?;
            for row in &rows {
                let noticed = row.noticed.as_deref().unwrap_or("SURVIVED");
                let kind = row.mutant.kind.to_string();
                let first = noticed.lines().next().unwrap_or_default();
                println!("{kind:<38}  line {:>6}  {first}", row.mutant.change.line);
            }
            let survived = rows.iter().filter(|row| row.noticed.is_none()).count();
            println!("{} mutants, {survived} survived", rows.len());
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
        Task::Rewrite { file, output, late } => {
            rewrite(&file, &output, late)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Coverage { files } => {
            print!("{}", coverage::table(&files)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Mutants { files } => {
            print!("{}", mutants::table(&files)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Bounds {
            results,
            rows,
            counters,
        } => {
            print!("{}", bounds::table(&results, &counters, rows)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Units {
            usage,
            results,
            counters,
        } => {
            print!("{}", units::table(&counters, &usage, &results)?);
            Ok(ExitCode::SUCCESS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_leaves_no_file() {
        let folder = PathBuf::from(std::env::var_os("TEST_TMPDIR").expect("Bazel sets it"));
        let (file, output) = (folder.join("in.ptx"), folder.join("out.ptx"));
        let text = |body: &str| {
            format!(".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() {{ {body} ret; }}")
        };
        fs::write(&file, text("tcgen05.unheard_of [0];")).unwrap();
        let message = rewrite(&file, &output, false).unwrap_err();
        assert!(
            message.contains("in.ptx: k: PTX line 4: tcgen05.unheard_of"),
            "{message}"
        );
        assert!(!output.exists());
        fs::write(&file, text("tcgen05.wait::ld.sync.aligned;")).unwrap();
        for late in [false, true] {
            rewrite(&file, &output, late).unwrap();
            let written = fs::read_to_string(&output).unwrap();
            assert!(written.contains("sm_90a") && !written.contains("tcgen05."));
        }
    }
}
