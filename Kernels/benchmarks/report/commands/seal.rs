//! `report seal`: results with all evidence in one signed file.

use crate::{print, tell, write};
use clap::Args;
use report_lib::{
    digest, merge, read_or_make_key, seal as sealed, Collection, Digest, Evidence, ReportingError,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct SealArguments {
    /// Result files and collections
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The sealed file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The secret key; made, with mode 0600, if it is not there
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Folder of the programs that measured, to seal their digests
    #[arg(long, value_name = "FOLDER")]
    pub programs: Option<PathBuf>,
    /// The artifact lock that they were built with (third_party/artifacts.lock.json), to seal it too
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
}

pub fn seal(arguments: &SealArguments) -> Result<ExitCode, ReportingError> {
    let collection = merge(Collection::read_all(&arguments.files)?).collection;
    let mut inputs = Vec::new();
    for path in &arguments.files {
        inputs.push(digest(&file_name(path), &read_bytes(path)?));
    }
    let evidence = Evidence {
        inputs,
        programs: program_digests(&collection, arguments.programs.as_deref())?,
        lock: arguments.lock.as_deref().map(read_bytes).transpose()?,
    };
    if evidence.programs.is_empty() {
        tell("no digests of programs are sealed: give their folder with --programs");
    }
    let (key, new) = read_or_make_key(&arguments.key)?;
    let bytes = sealed(&collection, evidence, &key)?;
    let kept: Vec<PathBuf> = arguments
        .files
        .iter()
        .chain([&arguments.key])
        .chain(&arguments.lock)
        .cloned()
        .collect();
    write(&arguments.output, &bytes, &kept)?;
    if new {
        tell(&format!(
            "{}: a new secret key; keep it to yourself",
            arguments.key.display()
        ));
    }
    let public: String = key
        .verifying_key()
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    print(&format!(
        "sealed {} by {public}\n",
        record::count_text(collection.row_count(), "row")
    ));
    Ok(ExitCode::SUCCESS)
}

/// The programs that the runs name. A file decides what is read here, so it may name benches only.
pub fn program_digests(
    collection: &Collection,
    folder: Option<&Path>,
) -> Result<Vec<Digest>, ReportingError> {
    let Some(folder) = folder else {
        return Ok(Vec::new());
    };
    let names: BTreeSet<&str> = collection
        .runs
        .iter()
        .map(|run| run.file.meta.program.as_str())
        .collect();
    let mut digests = Vec::new();
    for name in names {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with("bench_") || !name.chars().all(plain) {
            return Err(ReportingError::Usage(format!(
                "'{name}' is not the name of a bench"
            )));
        }
        digests.push(digest(name, &read_bytes(&folder.join(name))?));
    }
    Ok(digests)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReportingError> {
    std::fs::read(path).map_err(|error| ReportingError::input(path.display(), error))
}
