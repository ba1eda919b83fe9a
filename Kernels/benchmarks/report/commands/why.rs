//! `report why`: the worst losses under ncu.

use super::verify::beside_this_program;
use crate::{print, tell, write};
use clap::Args;
use report_lib::{why as profile, why_text, Collection, ReportingError, Which, WhyOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct WhyArguments {
    /// A result file, a collection, or a suite's folder
    pub file: PathBuf,
    /// Lost rows to profile, worst first
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rows: usize,
    /// Profile every row whose ratio is below this, however many there are
    #[arg(long, value_name = "RATIO", conflicts_with = "rows")]
    pub below: Option<f64>,
    /// Folder with the bench programs [default: where this build puts them]
    #[arg(long, value_name = "FOLDER")]
    pub programs: Option<PathBuf>,
    /// Nsight Compute's command
    #[arg(long, value_name = "FILE", default_value = "ncu")]
    pub ncu: PathBuf,
    /// Stop a profile that takes longer
    #[arg(long, value_name = "S", default_value_t = 900)]
    pub limit_s: u64,
    /// Write to this file instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn why(arguments: &WhyArguments) -> Result<ExitCode, ReportingError> {
    let collection = Collection::read(&arguments.file)?;
    let programs = match &arguments.programs {
        Some(folder) => folder.clone(),
        None => beside_this_program()?,
    };
    let options = WhyOptions {
        programs,
        which: match arguments.below {
            Some(ratio) => Which::Below(ratio),
            None => Which::Worst(arguments.rows),
        },
        ncu: arguments.ncu.clone(),
        limit: Duration::from_secs(arguments.limit_s),
    };
    let losses = profile(&collection, &options, &mut tell)?;
    let text = why_text(&losses);
    match &arguments.output {
        Some(path) => write(path, text.as_bytes(), std::slice::from_ref(&arguments.file))?,
        None => print(&text),
    }
    let explained = losses.iter().all(|loss| loss.profiles.is_ok());
    Ok(ExitCode::from(u8::from(!explained)))
}
