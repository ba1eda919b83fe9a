//! Shapes of row-wise operations.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::given;

/// `rows` rows of `columns` elements; written `4096x7168`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowShape {
    pub rows: usize,
    pub columns: usize,
}

impl RowShape {
    /// Why nobody can be asked to compute it, if so.
    pub(crate) fn check(self) -> Result<(), String> {
        given::check_sizes(&[("rows", self.rows), ("columns", self.columns)])
    }
}

impl fmt::Display for RowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.rows, self.columns))
    }
}
