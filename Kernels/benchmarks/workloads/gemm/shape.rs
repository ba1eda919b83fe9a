//! Shapes of matrix products, and the row layout of their groups.

use std::ops::Range;

use reference::quantize::{scale_place, tiled_scales};

/// Columns of the result, and length of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmShape {
    pub n: usize,
    pub k: usize,
}

/// Elements along k, and columns of `b`, that share one scale.
pub const SCALE_BLOCK: usize = 128;

/// Rows of one group start at a multiple of this, so that no tile holds rows of two groups.
pub const GROUP_ALIGNMENT: usize = 128;

/// Matrices of scales in whole tiles, as tensor cores read them, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleTiles {
    pub matrices: usize,
    /// Of one matrix, without padding.
    pub rows: usize,
}

impl ScaleTiles {
    /// Number of scales, padding included.
    pub fn count(self, blocks: usize) -> usize {
        self.matrices * tiled_scales(self.rows, blocks)
    }

    /// Place of the scale of a block; rows count through all matrices.
    pub fn place(self, row: usize, block: usize, blocks: usize) -> usize {
        let (matrix, row) = (row / self.rows, row % self.rows);
        matrix * tiled_scales(self.rows, blocks) + scale_place(row, block, blocks)
    }
}

/// How groups of rows share one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// No groups: one product.
    Dense,
    /// One group after another, each padded to [`GROUP_ALIGNMENT`] rows; an index per row names its
    /// group, -1 for padding.
    Contiguous,
    /// Equal space for every group; a count per group says how many rows are used.
    Masked,
}

/// The rows of `a` and `out`: which are used, and by which group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLayout {
    pub kind: GroupKind,
    /// Used rows of each group; some may be empty, not all.
    pub tokens: Vec<usize>,
    /// First row of each group.
    pub starts: Vec<usize>,
    /// All rows, including padding.
    pub rows: usize,
}

impl RowLayout {
    pub fn dense(rows: usize) -> Self {
        assert!(rows > 0, "a product without rows");
        Self {
            kind: GroupKind::Dense,
            tokens: vec![rows],
            starts: vec![0],
            rows,
        }
    }

    pub fn contiguous(tokens: Vec<usize>) -> Self {
        assert!(tokens.iter().any(|&rows| rows > 0), "all groups are empty");
        let mut next = 0;
        let starts = tokens
            .iter()
            .map(|rows| {
                let start = next;
                next += rows.next_multiple_of(GROUP_ALIGNMENT);
                start
            })
            .collect();
        Self {
            kind: GroupKind::Contiguous,
            tokens,
            starts,
            rows: next,
        }
    }

    /// Space for `most` rows in every group.
    pub fn masked(tokens: Vec<usize>, most: usize) -> Self {
        assert!(tokens.iter().any(|&rows| rows > 0), "all groups are empty");
        assert!(
            tokens.iter().all(|&rows| rows <= most),
            "a group has more than {most} rows"
        );
        let starts = (0..tokens.len()).map(|group| group * most).collect();
        Self {
            kind: GroupKind::Masked,
            rows: tokens.len() * most,
            tokens,
            starts,
        }
    }

    pub fn groups(&self) -> usize {
        self.tokens.len()
    }

    /// Rows that are not padding.
    pub fn used_rows(&self) -> usize {
        self.tokens.iter().sum()
    }

    pub fn used_groups(&self) -> usize {
        self.tokens.iter().filter(|&&rows| rows > 0).count()
    }

    /// Rows of each group that has any, in ascending order.
    pub fn used_ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        (0..self.groups())
            .map(|group| {
                let start = self.starts[group];
                (group, start..start + self.tokens[group])
            })
            .filter(|(_, range)| !range.is_empty())
    }

    /// The `index`-th row that is not padding, with its group.
    pub fn used_row(&self, index: usize) -> (usize, usize) {
        let mut left = index;
        for (group, range) in self.used_ranges() {
            if left < range.len() {
                return (group, range.start + left);
            }
            left -= range.len();
        }
        panic!("row {index} of {} used rows", self.used_rows());
    }

    /// Rows per tensor: of one group if every group has its own, otherwise of all.
    pub fn room(&self) -> usize {
        match self.kind {
            GroupKind::Masked => self.rows / self.groups(),
            _ => self.rows,
        }
    }

    /// Number of `a`'s scale tensors, and the length of their lines.
    pub fn scale_lines(&self) -> (usize, usize) {
        (self.rows / self.room(), self.room().next_multiple_of(4))
    }

    /// Index of a scale of `a`, with `deep` per row: for a block of k in a row of a group.
    pub fn a_scale_index(&self, deep: usize, block: usize, group: usize, row: usize) -> usize {
        let (_, line) = self.scale_lines();
        match self.kind {
            GroupKind::Masked => (group * deep + block) * line + row - self.starts[group],
            _ => block * line + row,
        }
    }

    /// Where scales of `a` in tiles lie: a matrix per group if every group has its own rows, otherwise one.
    pub fn tiles_of_a(&self) -> ScaleTiles {
        ScaleTiles {
            matrices: self.rows / self.room(),
            rows: self.room(),
        }
    }

    /// Those of `b`: a matrix per group.
    pub fn tiles_of_b(&self, n: usize) -> ScaleTiles {
        ScaleTiles {
            matrices: self.groups(),
            rows: n,
        }
    }

    /// The tensor that says which rows belong to which group.
    pub fn index_name(&self) -> Option<&'static str> {
        match self.kind {
            GroupKind::Dense => None,
            GroupKind::Contiguous => Some("group_of_row"),
            GroupKind::Masked => Some("rows_of_group"),
        }
    }

    /// The group of every row, -1 for padding.
    pub fn group_of_rows(&self) -> Vec<i32> {
        let mut groups = vec![-1; self.rows];
        for (group, range) in self.used_ranges() {
            groups[range].fill(group as i32);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_groups_start_at_whole_tiles() {
        let layout = RowLayout::contiguous(vec![1, 0, 130, 128]);
        assert_eq!(layout.starts, [0, 128, 128, 384]);
        assert_eq!((layout.rows, layout.used_rows()), (512, 259));
        assert_eq!(layout.used_groups(), 3);
        assert_eq!(layout.used_row(0), (0, 0));
        assert_eq!(layout.used_row(1), (2, 128));
        assert_eq!(layout.used_row(258), (3, 511));
        let groups = layout.group_of_rows();
        assert_eq!(groups.iter().filter(|&&group| group == -1).count(), 253);
        assert_eq!(
            (groups[0], groups[1], groups[257], groups[258]),
            (0, -1, 2, -1)
        );
    }

    #[test]
    fn masked_groups_have_equal_room() {
        let layout = RowLayout::masked(vec![3, 0, 8], 8);
        assert_eq!(
            (layout.starts.as_slice(), layout.rows),
            (&[0, 8, 16][..], 24)
        );
        assert_eq!(layout.used_row(3), (2, 16));
        let ranges: Vec<_> = layout.used_ranges().collect();
        assert_eq!(ranges, [(0, 0..3), (2, 16..24)]);
    }

    #[test]
    #[should_panic(expected = "all groups are empty")]
    fn something_must_be_there() {
        RowLayout::contiguous(vec![0, 0]);
    }
}
