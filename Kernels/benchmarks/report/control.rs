//! Whether a run called the same contender the same.

use record::{controls, ResultFile, Row, Status};
use stats::Verdict;

/// The controls of a file without the verdict `same`. One whose contender does not support its
/// workload is not odd.
pub fn odd_controls(file: &ResultFile) -> Vec<&Row> {
    let odd = |row: &&Row| match &row.speedup {
        Some(speedup) => speedup.verdict != Verdict::Same,
        None => row.status != Status::Unsupported,
    };
    controls(file).filter(odd).collect()
}
