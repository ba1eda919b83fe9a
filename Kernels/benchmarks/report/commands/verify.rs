//! `report verify`: the seal first, then a sample of the rows again.

use super::seal::program_digests;
use crate::arguments::parse_share;
use crate::{print, tell};
use clap::Args;
use report_lib::{
    is_seal, open, parse_public_key, verify as verify_rows, Collection, Conclusion, ReportingError,
    Sealed, VerifyOptions,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// A result file, a collection, or a seal
    pub file: PathBuf,
    /// Whom to trust: the public key that the seal must be signed with
    #[arg(long, value_name = "KEY")]
    pub public_key: Option<String>,
    /// Check the seal and measure nothing
    #[arg(long)]
    pub seal_only: bool,
    /// Folder with the bench programs [default: where this build puts them]
    #[arg(long, value_name = "FOLDER")]
    pub programs: Option<PathBuf>,
    /// Rows to measure again, spread over the file
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub sample: usize,
    /// Seed for the choice of rows
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Stop a bench that takes longer on one row
    #[arg(long, value_name = "S", default_value_t = 900)]
    pub limit_s: u64,
    /// The smallest difference that counts
    #[arg(long, default_value = "2%", value_parser = parse_share)]
    pub threshold: f64,
}

pub fn verify(arguments: &VerifyArguments) -> Result<ExitCode, ReportingError> {
    let sealed = unsealed(arguments)?;
    if arguments.seal_only {
        return Ok(ExitCode::SUCCESS);
    }
    let programs = match &arguments.programs {
        Some(folder) => folder.clone(),
        None => beside_this_program()?,
    };
    let collection = match sealed {
        Some(sealed) => {
            compare_programs(&sealed, &programs);
            sealed.collection
        }
        None => Collection::read(&arguments.file)?,
    };
    let options = VerifyOptions {
        programs,
        sample: arguments.sample,
        seed: arguments.seed,
        threshold: arguments.threshold,
        limit: std::time::Duration::from_secs(arguments.limit_s),
    };
    let verified = verify_rows(&collection, &options, &mut |row| {
        print(&format!(
            "{:<12}  {}: {}\n",
            row.conclusion, row.key, row.reason
        ));
    })?;
    let count = |conclusion| {
        let of = |row: &&report_lib::Verified| row.conclusion == conclusion;
        verified.iter().filter(of).count()
    };
    let inconsistent = count(Conclusion::Inconsistent);
    let consistent = count(Conclusion::Consistent);
    print(&format!(
        "{consistent} consistent, {inconsistent} inconsistent of {}\n",
        verified.len()
    ));
    Ok(match (inconsistent, consistent) {
        (0, 0) => ExitCode::from(3),
        (0, _) => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

/// The benches are built into the folder next to this program's.
pub(super) fn beside_this_program() -> Result<PathBuf, ReportingError> {
    let program = std::env::current_exe()
        .map_err(|error| ReportingError::Usage(format!("{error}; use --programs")))?;
    let folder = program.parent().and_then(Path::parent);
    Ok(folder.unwrap_or(Path::new("..")).join("comparison"))
}

/// Checks the seal, if the file is one; it must be if somebody is to be trusted.
fn unsealed(arguments: &VerifyArguments) -> Result<Option<Sealed>, ReportingError> {
    let path = &arguments.file;
    let trusted = arguments
        .public_key
        .as_deref()
        .map(parse_public_key)
        .transpose()?;
    let bytes = record::read_bounded(path).map_err(|source| record::RecordError::Read {
        path: path.clone(),
        source,
    })?;
    if !is_seal(&bytes) {
        return match trusted.is_some() || arguments.seal_only {
            true => Err(ReportingError::input(
                path.display(),
                "is not sealed, so nobody vouches for it",
            )),
            false => Ok(None),
        };
    }
    let sealed = open(&bytes, &path.display().to_string(), trusted.as_ref())?;
    let (key, summary) = (&sealed.statement.public_key, &sealed.statement.summary);
    print(&format!(
        "the seal is whole: {}, {}, signed by {key}\n",
        record::count_text(summary.rows, "row"),
        record::count_text(summary.samples, "sample")
    ));
    if trusted.is_none() {
        print("nobody vouches for that key: give the one that you trust with --public-key\n");
    }
    Ok(Some(sealed))
}

/// Says which programs here are not those that were sealed.
fn compare_programs(sealed: &Sealed, folder: &Path) {
    if sealed.statement.programs.is_empty() {
        return tell("the seal has no digests of programs");
    }
    match program_digests(&sealed.collection, Some(folder)) {
        Ok(here) => {
            for program in here
                .iter()
                .filter(|program| !sealed.statement.programs.contains(program))
            {
                tell(&format!(
                    "{} here is another program than the sealed one",
                    program.name
                ));
            }
        }
        Err(error) => tell(&format!("cannot compare the programs: {error}")),
    }
}
