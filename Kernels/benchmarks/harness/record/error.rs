//! What can go wrong between a run and its result file.

use std::path::PathBuf;

/// Why a result file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot read {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {path}: {source}; any existing file is unchanged")]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{origin} is not a result file: line {line}, column {column}: {problem}")]
    Malformed {
        origin: String,
        line: usize,
        column: usize,
        problem: String,
    },
    #[error(
        "{origin} has schema version {found}, but this program knows only {known}; use the program \
        version that wrote the file, or measure again"
    )]
    Schema {
        origin: String,
        found: String,
        known: u32,
    },
    #[error("{origin} contradicts itself: {problem}")]
    Inconsistent { origin: String, problem: String },
}
