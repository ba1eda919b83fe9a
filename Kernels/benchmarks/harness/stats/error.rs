//! What can be wrong with the input.

/// Why a statistic could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    #[error("no samples: a summary needs at least one")]
    Empty,
    #[error("{got} usable pairs of samples, a ratio needs at least {need}; run more rounds")]
    TooFewPairs { got: usize, need: usize },
    #[error(
        "{baseline} baseline samples but {contender} contender samples: pairs need equal counts"
    )]
    UnequalCounts { baseline: usize, contender: usize },
    #[error("{0} processes: their spread needs at least two")]
    TooFewProcesses(usize),
    #[error("sample {index} is {value}; a time must be positive and finite")]
    BadSample { index: usize, value: f64 },
}
