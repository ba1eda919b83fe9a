//! The command line.

use crate::commands::{
    ChooseArguments, HistoryArguments, ModelArguments, SealArguments, VerifyArguments, WhyArguments,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Processes result files of the benches, and collections of them
#[derive(Debug, Parser)]
#[command(
    name = "report",
    after_help = "Exit codes: 0 success; 1 a comparison failed, a verified row is inconsistent, a \
    required contender has no time, or a table is stale; 2 wrong usage, or a file cannot be read or \
    written; 3 verify, choose or model cannot tell."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Merge files into one collection; of duplicate rows, keep the later run's
    Merge(MergeArguments),
    /// Print the scoreboard, the losses and the details as Markdown, or the scoreboard for a terminal
    Summarize(SummarizeArguments),
    /// Compare a new run with a base; exit with 1 as --fail-on says
    Compare(CompareArguments),
    /// Draw throughput, ours against the best other, win map and roofline of every operation
    Plot(PlotArguments),
    /// Write a self-contained HTML page with everything
    Html(HtmlArguments),
    /// Check a file's seal, and measure a sample of its rows again on this machine
    Verify(VerifyArguments),
    /// Profile the worst losses under ncu: both sides, side by side
    Why(WhyArguments),
    /// Say which contender to use for an operation and a shape, or write a dispatch table
    Choose(ChooseArguments),
    /// Add up measured rows to a model's layer and step, and name the kernel to swap
    Model(ModelArguments),
    /// Write results, digests and card state into one signed file to pass on
    Seal(SealArguments),
    /// Check public claims against the measured rows
    Claims(ClaimsArguments),
    /// Convert the rows to another program's format
    Export(ExportArguments),
    /// Show trends over many runs, with changes told from noise; --append adds a run as a line
    History(HistoryArguments),
    /// Turn FlashInfer-Bench definitions and workloads, or a serving trace, into workload files
    Import(ImportArguments),
    /// Regenerate the tables and pictures of Markdown files from result files
    Page(PageArguments),
}

#[derive(Debug, Args)]
pub struct MergeArguments {
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The collection to write, gzipped if the name ends in .gz; every command reads both
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct SummarizeArguments {
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write to this file instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also append to the step summary of a GitHub job ($GITHUB_STEP_SUMMARY)
    #[arg(long)]
    pub github: bool,
    /// Add a table of all rows
    #[arg(long)]
    pub rows: bool,
    /// Print only the scoreboard, aligned, in colour on a terminal
    #[arg(long, conflicts_with_all = ["output", "github", "rows"])]
    pub terminal: bool,
}

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Result file, collection, or folder of a suite to compare with
    pub base: PathBuf,
    /// The same of the run that is judged
    pub new: PathBuf,
    /// What makes the comparison fail
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "slower,broken"
    )]
    pub fail_on: Vec<FailOn>,
    /// The slow-down to detect, e.g. 2%; less than half of it is never a regression
    #[arg(long, default_value = "2%", value_parser = parse_share)]
    pub threshold: f64,
    /// Compare runs of different devices
    #[arg(long)]
    pub across_devices: bool,
    /// Also append to the step summary of a GitHub job
    #[arg(long)]
    pub github: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A row that became slower
    Slower,
    /// A row that had a time and now fails
    Broken,
    /// A row that has disappeared
    Missing,
    /// Nothing
    Never,
}

#[derive(Debug, Args)]
pub struct PlotArguments {
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Folder to write into
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// SVG, PNG or both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "svg,png")]
    pub format: Vec<PlotFormat>,
    /// Plot only these operations
    #[arg(long = "op", value_name = "OP", value_delimiter = ',')]
    pub ops: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlotFormat {
    Svg,
    Png,
}

#[derive(Debug, Args)]
pub struct HtmlArguments {
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The page to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ClaimsArguments {
    /// Result files, collections, and folders of suites
    pub files: Vec<PathBuf>,
    /// A file of claims instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The other program's format
    #[arg(long, value_enum)]
    pub format: Format,
    /// The file to write; NVBench files have one device each: the second gets -2 before the extension
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The format of NVBench's --json
    Nvbench,
    /// github-action-benchmark's customSmallerIsBetter
    GithubActionBenchmark,
}

#[derive(Debug, Args)]
pub struct ImportArguments {
    /// FlashInfer-Bench definitions (JSON) and workloads (JSON lines)
    #[arg(required_unless_present = "trace", conflicts_with = "trace")]
    pub files: Vec<PathBuf>,
    /// Folder for one workload file per definition, or the file to write with --trace [default: print
    /// commands with --configs, where that can name the shapes]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Requests to a serving system: JSON lines with timestamp (ms), input_length and output_length,
    /// or CSV with TIMESTAMP, ContextTokens and GeneratedTokens
    #[arg(long, value_name = "FILE", requires_all = ["bench", "heads", "output"])]
    pub trace: Option<PathBuf>,
    /// What the trace's workloads are for
    #[arg(long, value_parser = ["decode", "prefill", "mla_decode"], requires = "trace")]
    pub bench: Option<String>,
    /// The model's heads, KV heads and head dimension, as 32x8x128; heads alone for mla_decode
    #[arg(long, value_name = "HxKVxD", requires = "trace")]
    pub heads: Option<String>,
    /// Requests that run at the same time
    #[arg(long, value_name = "N", default_value_t = 64, requires = "trace")]
    pub max_batch: usize,
    /// Steps to choose, evenly over all
    #[arg(long, value_name = "N", default_value_t = 16, requires = "trace")]
    pub samples: u64,
    /// Time of every step, whatever is in it
    #[arg(long, value_name = "MS", default_value_t = 25.0, requires = "trace")]
    pub step_ms: f64,
    /// Prompt tokens that enter in one step; a longer prompt enters alone [default: no limit]
    #[arg(long, value_name = "N", requires = "trace")]
    pub max_prefill_tokens: Option<u64>,
}

#[derive(Debug, Args)]
pub struct PageArguments {
    /// Markdown files [default: all in the repository that have tables]
    pub files: Vec<PathBuf>,
    /// Write nothing; exit with 1 if a table or picture differs from its result files
    #[arg(long)]
    pub check: bool,
}

/// `2%` or `0.02`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("'{text}' is not a share: expected 2% or 0.02")),
    }
}
