//! Shapes of row-wise operations.

use std::fmt;

/// `rows` rows of `columns` elements; written `4096x7168`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowShape {
    pub rows: usize,
    pub columns: usize,
}

impl fmt::Display for RowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.rows, self.columns))
    }
}
