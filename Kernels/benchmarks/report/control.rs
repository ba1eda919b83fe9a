//! Whether a run called the same contender the same.

use record::{controls, ResultFile, Row, Status};
use stats::Verdict;

/// The controls of a file that were found to be different, or have no time. One whose contender does
/// not support its workload is not odd; nor is one that the run could not decide.
pub fn odd_controls(file: &ResultFile) -> Vec<&Row> {
    let odd = |row: &&Row| match &row.speedup {
        Some(speedup) => matches!(speedup.verdict, Verdict::Faster | Verdict::Slower),
        None => !matches!(row.status, Status::Emulated | Status::Unsupported),
    };
    controls(file).filter(odd).collect()
}
