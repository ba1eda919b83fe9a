//! The command line, and which options a resumed run inherits.

use clap::Parser;
use cli::Preset;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Runs every bench and writes all results to one folder, with a summary, CSV, a page and plots
#[derive(Debug, Clone, Parser)]
#[command(
    name = "suite",
    after_help = "Exit codes: 0 every row is ok, emulated or unsupported; 1 a row, a bench or a control \
                  failed, or the run was interrupted; 2 wrong usage, or no bench left a result."
)]
pub struct Options {
    #[command(flatten)]
    pub kept: Kept,
    /// Continue the interrupted run in this folder, with its original options
    #[arg(long, value_name = "FOLDER")]
    pub resume: Option<PathBuf>,
    /// Folder to write into [default: out/<time>-<device>]
    #[arg(long, value_name = "FOLDER", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Time limit in minutes, divided among the benches; what does not fit is cut evenly
    #[arg(long, value_name = "M")]
    pub max_minutes: Option<f64>,
    /// Bench program to run; repeatable [default: those built with this one, else bench_* beside it]
    #[arg(long = "bench", value_name = "FILE")]
    pub benches: Vec<PathBuf>,
    /// Print what would run, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Short for --protocol quick
    #[arg(long, conflicts_with_all = ["protocol", "resume"])]
    pub quick: bool,
}

/// What must stay the same when a run is resumed.
#[derive(Debug, Clone, Default, PartialEq, Parser, Serialize, Deserialize)]
pub struct Kept {
    /// Protocol of every bench: published takes three processes and several times as long as quick.
    /// Both race our contenders against themselves, and the suite fails if it finds them different
    #[arg(long, value_enum, value_name = "NAME")]
    #[serde(default)]
    pub protocol: Option<Preset>,
    /// Run only these suites [default: smoke on a CPU, all but smoke on a GPU]
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    pub suites: Vec<String>,
    /// Run only these operations
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    pub ops: Vec<String>,
    /// Run one shard of each bench's workloads: 1/4, 2/4, 3/4, 4/4 on four GPUs
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// File of measured roofs, instead of measuring them first
    #[arg(long, value_name = "FILE")]
    pub roofs: Option<PathBuf>,
    /// More options for every bench, after --
    #[arg(last = true, value_name = "BENCH OPTION")]
    pub bench_options: Vec<String>,
}

impl Kept {
    /// What every bench is told, however it is called.
    pub fn bench_arguments(&self) -> Vec<String> {
        let mut arguments = self.bench_options.clone();
        if let Some(preset) = self.protocol {
            arguments.extend(["--protocol".to_owned(), preset.to_string()]);
        }
        arguments
    }

    /// Whether the benches were given an option of their own.
    pub fn chooses(&self, option: &str) -> bool {
        let mut names = self.bench_options.iter();
        names.any(|given| given.split('=').next() == Some(option))
    }
}

impl Options {
    pub fn kept_or(mut self, saved: Option<Kept>) -> Kept {
        if self.quick {
            self.kept.protocol = Some(Preset::Quick);
        }
        saved.unwrap_or(self.kept)
    }
}
