//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Works on result files of the benches, and on collections of them
#[derive(Debug, Parser)]
#[command(
    name = "report",
    after_help = "Exit codes: 0 done; 1 a comparison failed, a verified row is inconsistent, a \
                  required contender has no time, or a checked table differs; \
                  2 usage, or a file that cannot be read or written; 3 verify cannot tell."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put several files into one collection, every row once, the later run's
    Merge(MergeArguments),
    /// Print Markdown: geomeans, intervals, verdict counts, losses, failures
    Summarize(SummarizeArguments),
    /// Compare a new run with a base; exit 1 on what --fail-on names
    Compare(CompareArguments),
    /// Draw latency, throughput, speed-ups, roofline and heat map of every operation
    Plot(PlotArguments),
    /// Write one page with everything, for any browser, without a network
    Html(HtmlArguments),
    /// Measure a sample of a file's rows again on this machine
    Verify(VerifyArguments),
    /// Hold public claims against the measured rows
    Claims(ClaimsArguments),
    /// Write the rows in another program's format
    Export(ExportArguments),
    /// Write a run as one JSON line: commit, date, geomeans; exit 1 if a required contender has no time
    History(HistoryArguments),
    /// Turn FlashInfer-Bench definitions and workloads into commands of the benches here
    Import(ImportArguments),
    /// Write the tables of Markdown files anew from the result files that their comments name
    Page(PageArguments),
}

#[derive(Debug, Args)]
pub struct MergeArguments {
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The collection to write, as gzip if the name ends in .gz; every command reads either
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct SummarizeArguments {
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write here instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Append to the step summary of a GitHub job ($GITHUB_STEP_SUMMARY) too
    #[arg(long)]
    pub github: bool,
    /// Add a table of every row
    #[arg(long)]
    pub rows: bool,
}

#[derive(Debug, Args)]
pub struct CompareArguments {
    pub base: PathBuf,
    pub new: PathBuf,
    /// What makes the comparison fail
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "slower,broken"
    )]
    pub fail_on: Vec<FailOn>,
    /// The slow-down that must be found, e.g. 2%; less than half of it is never a regression
    #[arg(long, default_value = "2%", value_parser = parse_share)]
    pub threshold: f64,
    /// Compare runs of different devices
    #[arg(long)]
    pub across_devices: bool,
    /// Append to the step summary of a GitHub job too
    #[arg(long)]
    pub github: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A row that became slower
    Slower,
    /// A row that had a time and now fails
    Broken,
    /// A row that is not there any more
    Missing,
    /// Nothing
    Never,
}

#[derive(Debug, Args)]
pub struct PlotArguments {
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Folder to write into
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// SVG, PNG or both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "svg,png")]
    pub format: Vec<PlotFormat>,
    /// Only these operations
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
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The page
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct VerifyArguments {
    pub file: PathBuf,
    /// Folder of the bench programs [default: where this build puts them]
    #[arg(long, value_name = "FOLDER")]
    pub programs: Option<PathBuf>,
    /// Rows to measure again, spread over the file
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub sample: usize,
    /// Decides which rows
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// The difference that counts
    #[arg(long, default_value = "2%", value_parser = parse_share)]
    pub threshold: f64,
}

#[derive(Debug, Args)]
pub struct ClaimsArguments {
    /// Result files and collections
    pub files: Vec<PathBuf>,
    /// A file of claims in place of the known ones
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    #[arg(long, value_enum)]
    pub format: Format,
    /// The file to write; NVBench's has one device, so a second one gets -2 before the extension
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// What NVBench writes with --json
    Nvbench,
    /// customSmallerIsBetter of github-action-benchmark
    GithubActionBenchmark,
}

#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Contenders that must have a time in some row, such as cudnn,cublaslt
    #[arg(long, value_name = "CONTENDER", value_delimiter = ',')]
    pub require: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ImportArguments {
    /// Definitions (JSON) and workloads (JSON lines)
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PageArguments {
    /// Markdown files [default: all of the repository that have tables]
    pub files: Vec<PathBuf>,
    /// Write nothing; exit 1 if a table differs from its result files
    #[arg(long)]
    pub check: bool,
}

/// `2%` or `0.02`.
fn parse_share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("'{text}' is no share; write 2% or 0.02")),
    }
}
