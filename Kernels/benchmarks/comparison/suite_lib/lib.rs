//! Runs every bench and writes all results to one folder.
//!
//! ```text
//! options -> plan: query each bench for its workloads (--list-json), keep those selected
//!         -> roofs: bench_roofline, whose file the benches get
//!         -> each bench as a child process, into <folder>/<bench>.json
//!         -> collection, summary, CSV, page, plots
//!         -> under a named protocol: whether the same contender twice was called the same
//! ```
//!
//! A folder can be resumed: benches keep existing rows and measure what is missing.

mod child;
mod controls;
mod folder;
mod options;
mod plan;
mod progress;
mod reports;
mod run;

pub use run::main;

/// Why the suite failed; exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SuiteError(pub String);

impl SuiteError {
    fn new(message: impl std::fmt::Display) -> SuiteError {
        SuiteError(message.to_string())
    }
}

impl From<report_lib::ReportingError> for SuiteError {
    fn from(error: report_lib::ReportingError) -> Self {
        SuiteError::new(error)
    }
}

impl From<record::RecordError> for SuiteError {
    fn from(error: record::RecordError) -> Self {
        SuiteError::new(error)
    }
}
