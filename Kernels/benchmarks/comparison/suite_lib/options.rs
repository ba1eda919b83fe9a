//! The command line, and what of it a resumed run takes over.

use clap::Parser;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Runs every bench and writes one folder with all results, a summary, CSV, a page and plots
#[derive(Debug, Clone, Parser)]
#[command(
    name = "suite",
    after_help = "Exit codes: 0 every row is ok or unsupported; 1 a row or a bench failed; 2 usage."
)]
pub struct Options {
    #[command(flatten)]
    pub kept: Kept,
    /// Go on in this folder with a run that was cut short, with the options that it was started with
    #[arg(long, value_name = "FOLDER")]
    pub resume: Option<PathBuf>,
    /// Folder to write into [default: out/<time>-<device>]
    #[arg(long, value_name = "FOLDER", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Share this many minutes among the benches; what does not fit is cut evenly
    #[arg(long, value_name = "M")]
    pub max_minutes: Option<f64>,
    /// A bench program; repeatable [default: those built with this one, else bench_* beside it]
    #[arg(long = "bench", value_name = "FILE")]
    pub benches: Vec<PathBuf>,
    /// Print what would run, and end
    #[arg(long)]
    pub dry_run: bool,
}

/// What must stay the same when a run is resumed.
#[derive(Debug, Clone, Default, PartialEq, Parser, Serialize, Deserialize)]
pub struct Kept {
    /// Only these suites [default: smoke on a CPU, all but smoke on a GPU]
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    pub suites: Vec<String>,
    /// Only these operations
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    pub ops: Vec<String>,
    /// Only a share of each bench's workloads: 1/4, 2/4, 3/4, 4/4 on four GPUs
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// File of measured roofs, in place of measuring them first
    #[arg(long, value_name = "FILE")]
    pub roofs: Option<PathBuf>,
    /// Further options for every bench, after --
    #[arg(last = true, value_name = "BENCH OPTION")]
    pub bench_options: Vec<String>,
}

impl Options {
    pub fn kept_or(self, saved: Option<Kept>) -> Kept {
        saved.unwrap_or(self.kept)
    }
}
