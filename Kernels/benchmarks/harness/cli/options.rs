//! The options that every benchmark shares.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use clap_complete::Shell;
use contender::{DeviceKind, SHAPES_SEED};
use guest::Source;
use numeric::{one_way, DType};
use record::WorkloadFile;
use timing::{CacheState, Energy, Launch, Plan, Timer};

use crate::erased::AnyBench;
use crate::preset::Preset;
use crate::shard::Shard;
use crate::{Choices, OwnOperation, Passes, UsageError, WeightDType};

const WHAT: &str = "What to measure";

#[derive(Clone, Debug, Parser)]
#[command(
    disable_version_flag = true,
    after_help = "Exit codes: 0 every row is ok, emulated or unsupported; 1 a row is wrong, invalid, \
                  error or timeout, the device cannot be used, or the result could not be written; \
                  2 wrong usage; 128+n ended by signal n (the partial result is written)."
)]
pub struct Options {
    #[command(flatten, next_help_heading = WHAT)]
    pub what: WhatOptions,
    #[command(flatten, next_help_heading = "How to measure")]
    pub how: HowOptions,
    #[command(flatten, next_help_heading = "Output")]
    pub output: OutputOptions,
    #[command(flatten, next_help_heading = "Instead of measuring")]
    pub instead: InsteadOptions,
    /// Serve the supervisor on standard input.
    #[arg(long, hide = true)]
    pub worker: bool,
    /// Serve the worker on standard input.
    #[arg(long, hide = true)]
    pub planner: bool,
    /// Which of the `--processes` a worker or planner belongs to.
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    pub process: u32,
}

#[derive(Clone, Debug, Args)]
pub struct WhatOptions {
    /// Device: cpu, cuda or ptx [default: what the program is built for]
    #[arg(long)]
    pub device: Option<DeviceKind>,
    /// Suite of workloads; repeatable; see --list [default: smoke]
    #[arg(long = "suite", value_name = "NAME")]
    pub suites: Vec<String>,
    /// Custom shapes instead of a suite: sizes joined by x, shapes by commas, e.g. 4096x7168,16384x8192
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_config,
          conflicts_with = "suites")]
    pub configs: Vec<Config>,
    /// Shapes of a workload file instead of a suite; --export writes one
    #[arg(long = "workloads", value_name = "FILE", conflicts_with_all = ["suites", "configs"])]
    pub workload_file: Option<PathBuf>,
    /// Activation types, comma-separated: f32, f16, bf16, fp8_e4m3; of products also fp8_ue8m0, mxfp8, nvfp4, mxfp4
    #[arg(
        long = "dtype",
        value_name = "TYPE",
        value_delimiter = ',',
        default_value = "bf16"
    )]
    pub dtypes: Vec<DType>,
    /// Weight type, or `same` as the activations
    #[arg(long, value_name = "TYPE", default_value = "same")]
    pub weight_dtype: WeightDType,
    /// Forward, backward, or both, each on its own
    #[arg(long = "mode", value_name = "MODE", value_enum, default_value = "fwd")]
    pub passes: Passes,
    /// Measure only these operations
    #[arg(long = "op", value_name = "OP", value_delimiter = ',')]
    pub ops: Vec<String>,
    /// Measure only the workloads with these names
    #[arg(long = "workload", value_name = "NAME", value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// Measure only these contenders; a reference, our portable kernel beside a tuned one, or another release of a
    /// baseline (quack@0.6.4) is timed only if listed here
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = contender_name)]
    pub contenders: Vec<String>,
    /// The operation to race on: a problem file; see docs/YOUR_KERNEL.md
    #[arg(long, value_name = "FILE", hide = true, requires = "oracle")]
    pub problem: Option<PathBuf>,
    /// Its correct answers: a library with contender_oracle() of contender.h; with text for it: ./liboracle.so?text
    #[arg(long, value_name = "FILE", hide = true, requires = "problem")]
    pub oracle: Option<Source>,
    /// Race your own too: a library of contender.h, or a kernel.json; repeatable; with a name and text for the library:
    /// mine=./libmine.so?variant=2
    #[arg(long = "contender", value_name = "FILE")]
    pub libraries: Vec<Source>,
    /// Contender to compare the others with, or `best`: the fastest other of each workload [default: the first
    /// baseline with a time]
    #[arg(long, value_name = "NAME", value_parser = contender_name)]
    pub baseline: Option<String>,
    /// Seed of the shapes in the suite `unseen` [default: that of the published run]
    #[arg(long, value_name = "N", default_value_t = SHAPES_SEED, hide_default_value = true)]
    pub shapes_seed: u64,
    /// First build the kernels that baselines lack for these shapes, with tools/artifacts; needs Python, no GPU
    #[arg(long)]
    pub build_missing: bool,
    /// Measure one shard of the workloads: 1/4 is the first of four
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

/// Old names keep working.
fn contender_name(name: &str) -> Result<String, Infallible> {
    Ok(record::current_name(name).to_owned())
}

#[derive(Clone, Debug, Args)]
pub struct HowOptions {
    /// Measure by a named protocol, with controls, instead of the options that it sets
    #[arg(long, value_enum, value_name = "NAME",
          conflicts_with_all = ["processes", "iters", "rep_ms", "warmup_ms", "budget_ms"])]
    pub protocol: Option<Preset>,
    /// Measure every workload in this many processes; intervals include the spread between them
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub processes: u32,
    /// Run exactly this many rounds instead of stopping once the ratios are known
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "rep_ms")]
    pub iters: Option<u32>,
    /// Warm-up per contender before the rounds
    #[arg(long, value_name = "MS", default_value_t = 25)]
    pub warmup_ms: u64,
    /// Timed work per contender, in whole periods, instead of stopping once the ratios are known
    #[arg(long, value_name = "MS")]
    pub rep_ms: Option<u64>,
    /// Time limit for the rounds of one workload [default: 2000 on cuda, 100 on cpu]
    #[arg(long, value_name = "MS")]
    pub budget_ms: Option<u64>,
    /// Measure each contender alone and back to back in blocks of 500 ms that take turns, so that each
    /// has the clock that its own power draw allows
    #[arg(long, conflicts_with = "rep_ms")]
    pub steady: bool,
    /// Also measure energy: run each contender this long after the race and read the device's meter
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub energy_ms: Option<u64>,
    /// Timer: CUDA events around the op, graph replay, cupti (kernels only), or the wall clock
    /// [default: events on cuda, wall on cpu]
    #[arg(long, value_enum, hide_default_value = true)]
    pub timer: Option<TimerChoice>,
    /// State of the last-level cache at the start of a sample
    #[arg(long, value_enum, default_value = "cold")]
    pub cache: CacheChoice,
    /// Seed for inputs and order
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Check what an earlier run checked: its meta.entropy [default: drawn anew for every run]
    #[arg(long, value_name = "N")]
    pub entropy: Option<u64>,
    /// Skip the gate; every row is marked unverified
    #[arg(long)]
    pub skip_verify: bool,
    /// Treat a contender as hung after this long without a sign of life, ten times as long if it is emulated
    #[arg(long, value_name = "S", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout_s: u64,
    /// Start no new workload after this many minutes, divided evenly among processes; suites and
    /// operations take turns until then
    #[arg(long, value_name = "M", value_parser = parse_minutes)]
    pub max_minutes: Option<f64>,
    /// Continue an interrupted run: keep the rows of its file and measure the missing ones
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// File of measured roofs [default: bench_roofline's last result for this device]
    #[arg(long, value_name = "FILE")]
    pub roofs: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct OutputOptions {
    /// Write the result file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the rows as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a Markdown report
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Write all three to this folder, named after the program
    #[arg(long, value_name = "FOLDER")]
    pub out_dir: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct InsteadOptions {
    /// Print suites, workloads and contenders
    #[arg(long, conflicts_with_all = ["dry_run", "profile"])]
    pub list: bool,
    /// Print the same as JSON, including the device
    #[arg(long, conflicts_with_all = ["list", "dry_run", "profile"])]
    pub list_json: bool,
    /// Print what would be measured
    #[arg(long, conflicts_with = "profile")]
    pub dry_run: bool,
    /// Write the chosen suite as a workload file, to be edited and read with --workloads
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "list_json", "dry_run", "profile"])]
    pub export: Option<PathBuf>,
    /// Run each contender once between cudaProfilerStart and Stop, for ncu and nsys
    #[arg(long)]
    pub profile: bool,
    /// Race again whenever a --contender changes, until Ctrl-C, and print one line per workload: was, is, best other,
    /// verdict
    #[arg(long, conflicts_with_all = ["json", "csv", "md", "out_dir", "resume", "list", "list_json", "dry_run",
          "export", "profile"])]
    pub watch: bool,
    /// Build with this shell command first, and whenever a file beside a --contender changes
    #[arg(long, value_name = "COMMAND", requires = "watch")]
    pub build: Option<String>,
    /// Print shell completions
    #[arg(long, value_name = "SHELL", value_enum)]
    pub completions: Option<Shell>,
}

/// Random stream for the order of sequences, pages and the like.
const METADATA_STREAM: u32 = u32::MAX - 21;

/// One shape given with `--configs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(pub Vec<usize>);

const SIZE_MAX: usize = 1 << 31;

fn parse_config(text: &str) -> Result<Config, String> {
    let sizes: Result<Vec<usize>, _> = text.split(['x', 'X']).map(str::parse).collect();
    match sizes {
        Ok(sizes) if sizes.iter().all(|size| (1..=SIZE_MAX).contains(size)) => Ok(Config(sizes)),
        Ok(sizes) if sizes.iter().any(|size| *size > SIZE_MAX) => Err(format!(
            "'{text}' has a size above 2^31, more than any device holds"
        )),
        _ => Err(format!(
            "'{text}' is not a shape: expected positive sizes joined by x, such as 4096x7168"
        )),
    }
}

fn parse_minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes.is_finite() => Ok(minutes),
        _ => Err(format!(
            "'{text}' is not a time: expected minutes, such as 8 or 0.5"
        )),
    }
}

impl std::fmt::Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&sizes.join("x"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimerChoice {
    Events,
    Graph,
    Cupti,
    Wall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheChoice {
    Cold,
    Hot,
}

/// A workload file for this bench.
fn read_workloads(bench: &AnyBench, path: &Path) -> Result<WorkloadFile, UsageError> {
    let file = WorkloadFile::read(path).map_err(UsageError::new)?;
    let (name, path, suite) = (bench.name, path.display(), &file.suite);
    if file.bench != name {
        let other = &file.bench;
        return Err(UsageError(format!(
            "{path} has shapes of {other}, not of {name}"
        )));
    }
    let own = bench.suites.iter().any(|own| own.name == suite);
    if own || suite == CUSTOM {
        return Err(UsageError(format!(
            "{path} calls its suite '{suite}', which is {name}'s own; give it another name"
        )));
    }
    Ok(file)
}

/// The suite of shapes given on the command line.
const CUSTOM: &str = "custom";

impl Options {
    /// The command with a benchmark's name, for parsing and for completions.
    pub fn command_for(bench: &AnyBench) -> clap::Command {
        let shortcuts = bench.shortcuts.iter().map(|shortcut| {
            Arg::new(shortcut.flag)
                .long(shortcut.flag)
                .help(format!("Short for --suite {}", shortcut.suite))
                .help_heading(WHAT)
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["configs", "workload_file"])
        });
        let command = Self::command()
            .name(bench.name)
            .bin_name(bench.name)
            .about(bench.about)
            .args(shortcuts);
        match bench.takes_operation {
            true => Self::with_operation(command),
            false => command,
        }
    }

    /// The command of a bench whose operation the user brings.
    fn with_operation(command: clap::Command) -> clap::Command {
        let shown = ["problem", "oracle"].iter().fold(command, |command, name| {
            command.mut_arg(name, |arg| {
                arg.hide(false).required_unless_present("completions")
            })
        });
        // What its problem file says instead.
        let hidden = ["suites", "weight_dtype", "passes"].iter();
        hidden
            .fold(shown, |command, name| command.mut_arg(name, |arg| arg.hide(true)))
            .mut_arg("dtypes", |arg| {
                arg.help("Only these types of the problem file, comma-separated")
                    .hide_default_value(true)
            })
            .mut_arg("baseline", |arg| {
                arg.help("Contender to compare the others with [default: the last one that --contender names]")
            })
    }

    /// Parses a command line. The error, or help, prints itself and knows its exit code.
    pub fn parse_for(bench: &AnyBench, arguments: &[String]) -> Result<Self, clap::Error> {
        let matches = Self::command_for(bench).try_get_matches_from(arguments)?;
        let mut options = Self::from_arg_matches(&matches)?;
        let given = matches.value_source("dtypes") == Some(ValueSource::CommandLine);
        if bench.takes_operation && !given {
            // All types of the problem file.
            options.what.dtypes.clear();
        }
        let brought = &options.what.libraries;
        if bench.takes_operation && options.what.baseline.is_none() && brought.len() > 1 {
            // Nobody else races: those before the last are compared with it.
            options.what.baseline = brought.last().map(|last| last.name.clone());
        }
        let given = bench
            .shortcuts
            .iter()
            .filter(|it| matches.get_flag(it.flag));
        options
            .what
            .suites
            .extend(given.map(|it| it.suite.to_owned()));
        Ok(options)
    }

    /// The requested device, or the one the program was built for. Never a fallback.
    pub fn device(&self, bench: &AnyBench) -> DeviceKind {
        self.what
            .device
            .unwrap_or(DeviceKind::built_for(bench.arch))
    }

    pub fn choices(&self, bench: &AnyBench) -> Result<Choices, UsageError> {
        let what = &self.what;
        let mut suites = what.suites.clone();
        let given = what.workload_file.as_deref();
        let given = given.map(|path| read_workloads(bench, path)).transpose()?;
        if suites.is_empty() && what.configs.is_empty() && given.is_none() {
            let first = bench.suites.first().filter(|_| bench.takes_operation);
            suites.push(first.map_or("smoke", |suite| suite.name).to_owned());
        }
        let own = self.own(bench)?;
        let known = || bench.suites.iter().map(|suite| suite.name);
        if let Some(unknown) = suites
            .iter()
            .find(|name| !known().any(|suite| suite == **name))
        {
            let known: Vec<&str> = known().collect();
            return Err(UsageError(format!(
                "{} has no suite '{unknown}'; use one of {}",
                bench.name,
                known.join(", ")
            )));
        }
        Ok(Choices {
            device: self.device(bench),
            suites,
            configs: what.configs.iter().map(|config| config.0.clone()).collect(),
            given,
            dtypes: what.dtypes.clone(),
            weight_dtype: what.weight_dtype,
            passes: what.passes,
            shapes_seed: what.shapes_seed,
            metadata_seed: self.metadata_seed(),
            own,
        })
    }

    /// The operation that the user brings to a bench that takes one.
    fn own(&self, bench: &AnyBench) -> Result<Option<OwnOperation>, UsageError> {
        let (Some(problem), Some(oracle)) = (&self.what.problem, &self.what.oracle) else {
            return Ok(None);
        };
        match bench.takes_operation {
            true => Ok(Some(OwnOperation {
                problem: problem.clone(),
                oracle: oracle.clone(),
                patience: self.timeout(false),
            })),
            false => Err(UsageError(format!(
                "{} has operations of its own; --problem and --oracle are for bench_own",
                bench.name
            ))),
        }
    }

    /// Another one in each process: the order of sequences and pages is part of what a repetition of the
    /// run would draw anew, so it belongs to the spread between processes.
    fn metadata_seed(&self) -> u64 {
        let seed = self.how.entropy.unwrap_or(self.how.seed);
        // Contenders see what is drawn from it, and must not learn what else the entropy decides.
        one_way(seed, METADATA_STREAM, u64::from(self.process))
    }

    pub fn timer(&self, device: DeviceKind) -> Result<TimerChoice, UsageError> {
        match (device, self.how.timer) {
            (DeviceKind::Cpu, None | Some(TimerChoice::Wall)) | (DeviceKind::Ptx, None) => {
                Ok(TimerChoice::Wall)
            }
            (DeviceKind::Cuda, None) => Ok(TimerChoice::Events),
            (DeviceKind::Cuda, Some(timer)) if timer != TimerChoice::Wall => Ok(timer),
            (device, Some(timer)) => {
                let name = timer
                    .to_possible_value()
                    .map(|value| value.get_name().to_owned());
                Err(UsageError(format!(
                    "device {device} has no timer '{}'; use {}",
                    name.unwrap_or_default(),
                    match device {
                        DeviceKind::Cpu => "wall",
                        DeviceKind::Cuda => "events, graph or cupti",
                        DeviceKind::Ptx => "device cuda to measure",
                    }
                )))
            }
        }
    }

    /// How long a contender may be silent; emulated kernels get ten times as long.
    pub fn timeout(&self, emulated: bool) -> Duration {
        let slower = if emulated { 10 } else { 1 };
        Duration::from_secs(self.how.timeout_s) * slower
    }

    /// Processes that measure each workload.
    pub fn processes(&self) -> usize {
        match self.how.protocol {
            Some(preset) => preset.processes(),
            None => self.how.processes as usize,
        }
    }

    /// An error where the options ask for more than an emulation does, which verifies.
    fn check_emulation(&self, device: DeviceKind, arch: &str) -> Result<(), UsageError> {
        let option = match (self.how.timer, self.how.skip_verify) {
            (Some(_), _) => "--timer",
            (None, true) => "--skip-verify",
            (None, false) => return Ok(()),
        };
        Err(UsageError(format!(
            "device {device} of a program for {arch} verifies and does nothing else; drop {option}"
        )))
    }

    /// The protocol on a device that was opened for a build of `arch`.
    pub fn plan_for(&self, device: DeviceKind, arch: &str) -> Result<Plan, UsageError> {
        if is_emulation(device, arch) {
            self.check_emulation(device, arch)?;
        }
        self.plan(device)
    }

    fn plan(&self, device: DeviceKind) -> Result<Plan, UsageError> {
        let timer = self.timer(device)?;
        let mut plan = Plan::new(self.how.seed);
        plan.cache = match self.how.cache {
            CacheChoice::Cold => CacheState::Cold,
            CacheChoice::Hot => CacheState::Hot,
        };
        plan.launch = match timer {
            TimerChoice::Graph => Launch::Graph,
            _ => Launch::Direct,
        };
        plan.timer = match timer {
            TimerChoice::Cupti => Timer::Kernel,
            _ => Timer::Op,
        };
        if self.how.steady && plan.timer == Timer::Kernel {
            return Err(UsageError::new(
                "--steady times executions back to back, which --timer cupti does not; use events",
            ));
        }
        plan.steady = self.how.steady.then_some(timing::BLOCK);
        plan.warmup = Duration::from_millis(self.how.warmup_ms);
        plan.energy = self.how.energy_ms.map(|ms| Energy {
            duration: Duration::from_millis(ms),
            limited_only: false,
        });
        plan.repeat = self.how.rep_ms.map(Duration::from_millis);
        // A shared CPU is never quiet enough to stop early: default to short runs with wide intervals.
        plan.rule.budget = match (self.how.budget_ms, device) {
            (Some(budget_ms), _) => Duration::from_millis(budget_ms),
            (None, DeviceKind::Cpu) => plan.rule.duration_min,
            (None, DeviceKind::Cuda | DeviceKind::Ptx) => plan.rule.budget,
        };
        if let Some(preset) = self.how.protocol {
            preset.apply(&mut plan);
        }
        plan.entropy = self.how.entropy.unwrap_or(plan.entropy);
        plan.rule.rounds_fixed = self.how.iters.map(|rounds| rounds as usize);
        Ok(plan)
    }
}

/// Whether kernels of a build are emulated there: PTX in an interpreter, or rewritten for another SM.
pub fn is_emulation(device: DeviceKind, arch: &str) -> bool {
    device == DeviceKind::Ptx || device == DeviceKind::Cuda && arch.contains("_on_")
}

#[cfg(test)]
mod tests;
