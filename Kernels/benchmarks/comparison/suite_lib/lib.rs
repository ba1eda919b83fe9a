//! Runs every bench and writes one folder with everything they found.
//!
//! ```text
//! options -> plan: ask each bench for its workloads (--list-json), leave what was chosen
//!         -> roofs: bench_roofline, whose file the benches get
//!         -> each bench as a child process, into <folder>/<bench>.json
//!         -> collection, summary, CSV, page, plots
//! ```
//!
//! A folder can be resumed: benches keep the rows that are there and measure what is missing.

mod child;
mod folder;
mod options;
mod plan;
mod progress;
mod reports;
mod run;

pub use run::main;

/// Why the suite could not do its work; exit code 2.
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

impl From<report::ReportError> for SuiteError {
    fn from(error: report::ReportError) -> Self {
        SuiteError::new(error)
    }
}
