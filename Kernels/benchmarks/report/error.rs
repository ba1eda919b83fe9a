//! Why a command could not do its work.

use report::ReportError;

/// Every one of these ends the program with exit code 2 and leaves all inputs as they were.
#[derive(Debug, thiserror::Error)]
pub enum ReportingError {
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("{origin}: {problem}")]
    Input { origin: String, problem: String },
    #[error("{0}")]
    Usage(String),
}

impl ReportingError {
    pub fn input(origin: impl ToString, problem: impl ToString) -> ReportingError {
        ReportingError::Input {
            origin: origin.to_string(),
            problem: problem.to_string(),
        }
    }
}
