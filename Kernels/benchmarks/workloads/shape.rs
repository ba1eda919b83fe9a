//! Shapes of row-wise operations, as typed on a command line.

use std::fmt;
use std::str::FromStr;

/// `rows` rows of `columns` elements; written `4096x7168`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowShape {
    pub rows: usize,
    pub columns: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shape '{0}' is not of the form ROWSxCOLUMNS with both at least 1, e.g. 4096x7168")]
pub struct BadShape(pub String);

impl fmt::Display for RowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.rows, self.columns))
    }
}

impl FromStr for RowShape {
    type Err = BadShape;

    fn from_str(text: &str) -> Result<Self, BadShape> {
        let parse = || {
            let (rows, columns) = text.trim().split_once(['x', 'X'])?;
            let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
            // The element count must fit in memory addresses with room to spare.
            let fits = |n: usize| (1..=1 << 40).contains(&n);
            (fits(rows) && fits(columns)).then_some(RowShape { rows, columns })
        };
        parse().ok_or_else(|| BadShape(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let shape: RowShape = "4096x7168".parse().unwrap();
        assert_eq!((shape.rows, shape.columns), (4096, 7168));
        assert_eq!(shape.to_string(), "4096x7168");
        assert_eq!(
            "1X3".parse(),
            Ok(RowShape {
                rows: 1,
                columns: 3
            })
        );
    }

    #[test]
    fn refuses_what_is_no_shape() {
        for text in [
            "",
            "4096",
            "x",
            "0x5",
            "5x0",
            "-1x5",
            "3x4x5",
            "9999999999999999x2",
        ] {
            let error = text.parse::<RowShape>().unwrap_err();
            assert!(error.to_string().contains("ROWSxCOLUMNS"), "{text}");
        }
    }
}
