//! Shapes of native sparse attention, and which key blocks each query reads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use numeric::{bits, index_below};
use serde::{Deserialize, Serialize};

use super::op::NsaOp;

/// Queries `[batch, sequence, heads, dim]`; keys and values `[batch, sequence, groups, dim]`. A
/// group of heads shares keys, values and the selection of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NsaShape {
    pub batch: usize,
    pub sequence: usize,
    pub heads: usize,
    pub groups: usize,
    pub dim: usize,
    /// Keys per block.
    pub block: usize,
    /// Maximum blocks per query.
    pub selected: usize,
    /// Maximum keys that the sliding branch sees, including the query's own.
    #[serde(default = "default_window")]
    pub window: usize,
}

fn default_window() -> usize {
    DEFAULT_WINDOW
}

/// The default window, from the NSA paper.
pub const DEFAULT_WINDOW: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNsa {
    #[error("'{0}' has a size of 0; every size must be at least 1")]
    Empty(String),
    #[error("{heads} heads cannot be divided evenly among {groups} groups")]
    Groups { heads: usize, groups: usize },
    #[error(
        "'{0}' is not a shape of sparse attention: expected \
        BATCHxSEQUENCExHEADSxGROUPSxDIMxBLOCKxSELECTED, such as 2x512x16x1x64x32x8, and an eighth \
        number for a window other than 512"
    )]
    Form(String),
    #[error("query {query} selects block {block}; there are only {blocks}")]
    OutOfRange {
        query: usize,
        block: i32,
        blocks: usize,
    },
    #[error("query {query} selects block {block} twice")]
    Duplicate { query: usize, block: i32 },
    #[error("query {query} at position {position} selects block {block}, which comes after it")]
    NotCausal {
        query: usize,
        position: usize,
        block: i32,
    },
    #[error("query {query} selects no block")]
    Nothing { query: usize },
    #[error("{given} indices given, but the shape needs {wanted}")]
    Length { given: usize, wanted: usize },
}

impl NsaShape {
    /// From the numbers of `--configs`.
    pub fn from_sizes(sizes: &[usize]) -> Result<Self, BadNsa> {
        let text = || {
            let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
            words.join("x")
        };
        let (&[batch, sequence, heads, groups, dim, block, selected], window) = (match sizes {
            [all @ .., window] if sizes.len() == 8 => (all, *window),
            all => (all, DEFAULT_WINDOW),
        }) else {
            return Err(BadNsa::Form(text()));
        };
        if sizes.contains(&0) {
            return Err(BadNsa::Empty(text()));
        }
        if heads % groups != 0 {
            return Err(BadNsa::Groups { heads, groups });
        }
        Ok(Self {
            batch,
            sequence,
            heads,
            groups,
            dim,
            block,
            selected,
            window,
        })
    }

    pub fn tokens(self) -> usize {
        self.batch * self.sequence
    }

    /// 1 / sqrt(dim).
    pub fn scale(self) -> f32 {
        (self.dim as f32).sqrt().recip()
    }

    pub fn heads_per_group(self) -> usize {
        self.heads / self.groups
    }

    pub fn blocks(self) -> usize {
        self.sequence.div_ceil(self.block)
    }

    /// Key rows of a sequence: one per token, or one per block.
    pub fn rows(self, op: NsaOp) -> usize {
        match op {
            NsaOp::Compressed => self.blocks(),
            _ => self.sequence,
        }
    }

    /// The rows that a position sees, in the branches where they form one range.
    ///
    /// # Panics
    /// For the others.
    pub fn visible(self, op: NsaOp, position: usize) -> Range<usize> {
        match op {
            NsaOp::Compressed => 0..(position + 1) / self.block,
            NsaOp::Sliding => (position + 1).saturating_sub(self.window)..position + 1,
            NsaOp::Selected | NsaOp::Gated => panic!("{op} has no range of keys"),
        }
    }
}

impl fmt::Display for NsaShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            batch,
            sequence,
            heads,
            groups,
            dim,
            block,
            selected,
            window,
        } = self;
        let window = match *window {
            DEFAULT_WINDOW => String::new(),
            window => format!("w{window}"),
        };
        f.pad(&format!(
            "b{batch}s{sequence}h{heads}g{groups}d{dim}n{block}k{selected}{window}"
        ))
    }
}

/// Valid block indices `[batch, sequence, groups, selected]`: in range, causal, without duplicates. A
/// query early in its sequence has fewer blocks than it may select; -1 fills the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    shape: NsaShape,
    indices: Arc<[i32]>,
}

impl Selection {
    pub fn new(shape: NsaShape, indices: Vec<i32>) -> Result<Self, BadNsa> {
        let wanted = shape.tokens() * shape.groups * shape.selected;
        if indices.len() != wanted {
            let given = indices.len();
            return Err(BadNsa::Length { given, wanted });
        }
        for (query, row) in indices.chunks(shape.selected).enumerate() {
            let position = query / shape.groups % shape.sequence;
            check_row(shape, query, position, row)?;
        }
        Ok(Self {
            shape,
            indices: indices.into(),
        })
    }

    /// Resembles a selection by score: always the first block, the query's own and the one before it,
    /// plus others from those before it, drawn by `seed`.
    pub fn drawn(shape: NsaShape, seed: u64) -> Self {
        let mut indices = Vec::with_capacity(shape.tokens() * shape.groups * shape.selected);
        for query in 0..shape.tokens() * shape.groups {
            let own = query / shape.groups % shape.sequence / shape.block;
            let mut row: Vec<i32> = Vec::with_capacity(shape.selected);
            let take = |row: &mut Vec<i32>, block: usize| {
                let block = block as i32;
                if row.len() < shape.selected && !row.contains(&block) {
                    row.push(block);
                }
            };
            for always in [own, 0, own.saturating_sub(1)] {
                take(&mut row, always);
            }
            let most = shape.selected.min(own + 1);
            let mut draw = 0;
            while row.len() < most {
                let random = bits(seed, query as u32, draw);
                take(&mut row, index_below(random, own as u32 + 1) as usize);
                draw += 1;
            }
            row.resize(shape.selected, -1);
            indices.extend(row);
        }
        Self {
            shape,
            indices: indices.into(),
        }
    }

    pub fn shape(&self) -> NsaShape {
        self.shape
    }

    pub fn indices(&self) -> &[i32] {
        &self.indices
    }

    /// The blocks of one query and group.
    pub fn row(&self, token: usize, group: usize) -> impl Iterator<Item = usize> + '_ {
        let start = (token * self.shape.groups + group) * self.shape.selected;
        let row = &self.indices[start..][..self.shape.selected];
        row.iter().filter(|&&block| block >= 0).map(|&b| b as usize)
    }

    /// Total keys read, each counted once per query and group that sees it.
    pub fn keys_read(&self) -> f64 {
        let shape = self.shape;
        let queries = self.indices.chunks(shape.selected).enumerate();
        let of_query = |(query, row): (usize, &[i32])| -> usize {
            let position = query / shape.groups % shape.sequence;
            let chosen = row.iter().filter(|&&block| block >= 0);
            let seen = chosen.map(|&b| shape.block.min(position + 1 - b as usize * shape.block));
            seen.sum()
        };
        queries.map(|query| of_query(query) as f64).sum()
    }
}

fn check_row(shape: NsaShape, query: usize, position: usize, row: &[i32]) -> Result<(), BadNsa> {
    let blocks = shape.blocks();
    for (place, &block) in row.iter().enumerate().filter(|(_, &block)| block != -1) {
        if block < 0 || block as usize >= blocks {
            return Err(BadNsa::OutOfRange {
                query,
                block,
                blocks,
            });
        }
        if row[..place].contains(&block) {
            return Err(BadNsa::Duplicate { query, block });
        }
        if block as usize * shape.block > position {
            return Err(BadNsa::NotCausal {
                query,
                position,
                block,
            });
        }
    }
    if row.iter().all(|&block| block == -1) {
        return Err(BadNsa::Nothing { query });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> NsaShape {
        NsaShape::from_sizes(&[2, 10, 4, 2, 16, 4, 2]).unwrap()
    }

    #[test]
    fn drawn_selections_are_sound_and_full() {
        for sizes in [[2, 10, 4, 2, 16, 4, 2], [1, 200, 16, 1, 64, 32, 5]] {
            let shape = NsaShape::from_sizes(&sizes).unwrap();
            let drawn = Selection::drawn(shape, 7);
            assert_eq!(
                Selection::new(shape, drawn.indices().to_vec()),
                Ok(drawn.clone())
            );
            for token in 0..shape.tokens() {
                let own = token % shape.sequence / shape.block;
                let row: Vec<usize> = drawn.row(token, 0).collect();
                assert_eq!(row.len(), shape.selected.min(own + 1));
                assert!(row.contains(&own));
            }
        }
    }

    #[test]
    fn unsound_selections_are_refused() {
        let changed = |place: usize, block: i32| {
            let mut indices = Selection::drawn(shape(), 7).indices().to_vec();
            indices[place] = block;
            Selection::new(shape(), indices)
        };
        assert!(matches!(
            changed(0, 3),
            Err(BadNsa::OutOfRange { block: 3, .. })
        ));
        assert!(matches!(changed(0, -2), Err(BadNsa::OutOfRange { .. })));
        assert!(matches!(
            changed(0, 2),
            Err(BadNsa::NotCausal { position: 0, .. })
        ));
        assert!(matches!(
            changed(1, 0),
            Err(BadNsa::Duplicate { block: 0, .. })
        ));
        assert!(matches!(changed(0, -1), Err(BadNsa::Nothing { query: 0 })));
        let short = Selection::new(shape(), vec![0]);
        assert!(matches!(short, Err(BadNsa::Length { given: 1, .. })));
    }

    #[test]
    fn sizes_become_shapes_or_say_why_not() {
        assert_eq!(shape().to_string(), "b2s10h4g2d16n4k2");
        let message = |sizes: &[usize]| NsaShape::from_sizes(sizes).unwrap_err().to_string();
        assert!(message(&[1, 2]).contains("'1x2'"));
        assert!(message(&[2, 10, 4, 3, 16, 4, 2]).contains("3 groups"));
        assert!(message(&[2, 0, 4, 2, 16, 4, 2]).contains("size of 0"));
        assert!(message(&[2, 10, 4, 2, 16, 4, 2, 0]).contains("size of 0"));
        let windowed = NsaShape::from_sizes(&[2, 10, 4, 2, 16, 4, 2, 3]).unwrap();
        assert_eq!(windowed.to_string(), "b2s10h4g2d16n4k2w3");
    }

    #[test]
    fn windows_and_whole_blocks_end_at_the_query() {
        let shape = NsaShape::from_sizes(&[1, 10, 4, 2, 16, 4, 2, 3]).unwrap();
        assert_eq!(shape.visible(NsaOp::Sliding, 1), 0..2);
        assert_eq!(shape.visible(NsaOp::Sliding, 5), 3..6);
        assert_eq!(shape.visible(NsaOp::Compressed, 2), 0..0);
        assert_eq!(shape.visible(NsaOp::Compressed, 7), 0..2);
        assert_eq!(
            (shape.rows(NsaOp::Compressed), shape.rows(NsaOp::Sliding)),
            (3, 10)
        );
    }

    #[test]
    fn keys_are_counted_up_to_the_query() {
        let shape = NsaShape::from_sizes(&[1, 5, 1, 1, 16, 4, 1]).unwrap();
        // Positions 0 to 3 read 1 to 4 keys of block 0, position 4 the first of block 1.
        assert_eq!(Selection::drawn(shape, 7).keys_read(), 11.0);
    }
}
