//! `report model`: a model's layer and step from measured rows.

use crate::{load, print};
use clap::{Args, ValueEnum};
use report_lib::{find_model, step, step_text, Phase, ReportingError, StepOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Some part has no measured row near, so there is no total.
const CANNOT_TELL: u8 = 3;

#[derive(Debug, Args)]
pub struct ModelArguments {
    /// The model, such as llama-3.1-8b
    pub name: String,
    /// Result files, collections, and folders of suites
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Sequences of a step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: u64,
    /// Tokens of each sequence
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub context: u64,
    /// What to add up
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "decode,prefill"
    )]
    pub phase: Vec<Steps>,
    /// The contender to start from, where it has a time
    #[arg(long, value_name = "CONTENDER", default_value = "ours")]
    pub using: String,
    /// Type of the matrix products
    #[arg(long, value_name = "DTYPE", default_value = "bf16")]
    pub gemm_dtype: String,
    /// Type of everything else
    #[arg(long, value_name = "DTYPE", default_value = "bf16")]
    pub dtype: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Steps {
    /// One new token of each sequence
    Decode,
    /// Whole prompts
    Prefill,
}

pub fn model(arguments: &ModelArguments) -> Result<ExitCode, ReportingError> {
    let model = find_model(&arguments.name)?;
    let views = load(&arguments.files)?;
    let mut whole = true;
    for view in &views {
        for phase in &arguments.phase {
            let options = StepOptions {
                phase: match phase {
                    Steps::Decode => Phase::Decode,
                    Steps::Prefill => Phase::Prefill,
                },
                batch: arguments.batch,
                context: arguments.context,
                using: arguments.using.clone(),
                gemm_dtype: arguments.gemm_dtype.clone(),
                dtype: arguments.dtype.clone(),
            };
            let step = step(view, &model, &options);
            whole &= step.total().is_some();
            print(&step_text(&model, &step, &options, &view.title));
            print("\n");
        }
    }
    Ok(ExitCode::from(if whole { 0 } else { CANNOT_TELL }))
}
