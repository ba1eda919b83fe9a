//! Shapes of training primitives.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rows::RowShape;

/// Queries and keys of a batch of sequences, as `[batch, sequence, heads, dim]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RopeShape {
    pub batch: usize,
    pub sequence: usize,
    pub query_heads: usize,
    pub key_heads: usize,
    pub dim: usize,
}

impl RopeShape {
    pub fn tokens(self) -> usize {
        self.batch * self.sequence
    }
}

impl fmt::Display for RopeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            batch,
            sequence,
            query_heads,
            key_heads,
            dim,
        } = self;
        f.pad(&format!(
            "b{batch}s{sequence}h{query_heads}k{key_heads}d{dim}"
        ))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingShape {
    Rows(RowShape),
    Rope(RopeShape),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTrainingShape {
    #[error("a head of {0} elements cannot be split into pairs; use an even number from 2")]
    OddDim(usize),
    #[error("'{0}' has a size of 0; every size must be at least 1")]
    Empty(String),
    #[error(
        "'{0}' is not a shape of a training op: expected ROWSxCOLUMNS, such as 16384x4096, or for RoPE \
        BATCHxSEQUENCExQUERY_HEADSxKEY_HEADSxDIM, such as 4x4096x32x8x128"
    )]
    Form(String),
}

impl TrainingShape {
    /// From the numbers of `--configs`.
    pub fn from_sizes(sizes: &[usize]) -> Result<Self, BadTrainingShape> {
        let text = || {
            let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
            words.join("x")
        };
        if sizes.contains(&0) {
            return Err(BadTrainingShape::Empty(text()));
        }
        match *sizes {
            [rows, columns] => Ok(Self::Rows(RowShape { rows, columns })),
            [.., dim] if sizes.len() == 5 && dim % 2 == 1 => Err(BadTrainingShape::OddDim(dim)),
            [batch, sequence, query_heads, key_heads, dim] => Ok(Self::Rope(RopeShape {
                batch,
                sequence,
                query_heads,
                key_heads,
                dim,
            })),
            _ => Err(BadTrainingShape::Form(text())),
        }
    }
}

impl fmt::Display for TrainingShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(shape) => shape.fmt(f),
            Self::Rope(shape) => shape.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_shapes_or_say_why_not() {
        let shape = |sizes: &[usize]| TrainingShape::from_sizes(sizes);
        assert_eq!(shape(&[3, 5]).unwrap().to_string(), "3x5");
        let rope = shape(&[2, 7, 4, 1, 64]).unwrap();
        assert_eq!(rope.to_string(), "b2s7h4k1d64");
        let message = |sizes: &[usize]| shape(sizes).unwrap_err().to_string();
        assert!(message(&[3, 0]).contains("'3x0'"));
        assert!(message(&[2, 7, 4, 1, 63]).contains("63"));
        assert!(message(&[1, 2, 3]).contains("'1x2x3'"));
    }
}
