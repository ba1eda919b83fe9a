//! Why a command failed.

use record::RecordError;

/// Each of these exits with code 2 and leaves all inputs unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReportingError {
    #[error(transparent)]
    Report(#[from] RecordError),
    #[error("{origin}: {problem}")]
    Input { origin: String, problem: String },
    #[error("{0}")]
    Usage(String),
}

impl From<models::UnknownModel> for ReportingError {
    fn from(unknown: models::UnknownModel) -> Self {
        ReportingError::Usage(unknown.to_string())
    }
}

impl ReportingError {
    pub fn input(origin: impl ToString, problem: impl ToString) -> ReportingError {
        ReportingError::Input {
            origin: origin.to_string(),
            problem: problem.to_string(),
        }
    }
}
