//! What a row is about: the key that matches rows of two runs.

use crate::Row;
use std::fmt;

/// Two rows with equal keys measure the same contender on the same workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    pub op: String,
    pub dtype: String,
    pub suite: String,
    pub workload: String,
    /// The axes as JSON text: a suite may give an old name to a new shape.
    pub axes: String,
    pub contender: String,
}

impl RowKey {
    pub fn of(row: &Row) -> RowKey {
        RowKey {
            op: row.op.clone(),
            dtype: row.dtype.clone(),
            suite: row.workload.suite.clone(),
            workload: row.workload.name.clone(),
            axes: serde_json::to_string(&row.workload.axes).unwrap_or_default(),
            contender: row.contender.name.clone(),
        }
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowKey {
            op,
            dtype,
            suite,
            workload,
            contender,
            ..
        } = self;
        write!(f, "{op} {dtype} {suite}/{workload} {contender}")
    }
}
