//! Paged caches: which page of the pool holds which tokens of which sequence.

use contender::Workload;
use numeric::{bits, index_below};
use tensor::TensorSpec;

use crate::attention_kinds::{LevelOf, DEAD_LEVEL};

/// Random streams of the permutation of pages, and of sequences.
const PAGE_STREAM: u32 = 0;
const SEQUENCE_STREAM: u32 = 1;

/// The host's copy of a page table. Page `p` of sequence `s` is `indices[indptr[s] + p]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageTable {
    /// Tokens per page.
    pub page_size: usize,
    /// Pages in the pool; some belong to no sequence.
    pub pool_pages: usize,
    /// Tokens of each sequence; an empty one has 0 and owns no page.
    pub lengths: Vec<i32>,
    /// First entry of each sequence in `indices`, and the end of the last one.
    pub indptr: Vec<i32>,
    /// Pages of all sequences, one after another.
    pub indices: Vec<i32>,
    /// Tokens in the last page of each sequence: 1 to `page_size`, or 0 if there is none.
    pub last_page_lengths: Vec<i32>,
}

/// An invalid page table. The message names the entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad page table: {0}")]
pub struct BadPageTable(pub String);

impl PageTable {
    /// A table for sequences of these lengths, with pages scattered by `seed` over a pool an eighth
    /// larger than needed.
    pub fn scattered(lengths: &[usize], page_size: usize, seed: u64) -> Result<Self, BadPageTable> {
        if page_size == 0 {
            return Err(BadPageTable("page size 0; it must be at least 1".into()));
        }
        let pages: Vec<usize> = lengths.iter().map(|n| n.div_ceil(page_size)).collect();
        let needed: usize = pages.iter().sum();
        let pool_pages = needed + (needed / 8).max(2);
        let tokens = pool_pages.saturating_mul(page_size);
        if i32::try_from(tokens).is_err() {
            return Err(BadPageTable(format!(
                "{tokens} tokens in the pool; the limit is {}",
                i32::MAX
            )));
        }
        let mut pool: Vec<i32> = (0..pool_pages as i32).collect();
        shuffle(&mut pool, seed, PAGE_STREAM);
        pool.truncate(needed);
        let ends = pages.iter().scan(0, |end, pages| {
            *end += *pages as i32;
            Some(*end)
        });
        let table = Self {
            page_size,
            pool_pages,
            lengths: lengths.iter().map(|&length| length as i32).collect(),
            indptr: std::iter::once(0).chain(ends).collect(),
            indices: pool,
            last_page_lengths: lengths
                .iter()
                .zip(&pages)
                .map(|(&length, &pages)| (length - pages.saturating_sub(1) * page_size) as i32)
                .collect(),
        };
        table.validate()?;
        Ok(table)
    }

    pub fn sequences(&self) -> usize {
        self.lengths.len()
    }

    /// Tokens of all sequences.
    pub fn tokens(&self) -> usize {
        self.lengths.iter().map(|&length| length as usize).sum()
    }

    /// Positions that new token `query` of `q_len` sees: those up to its own.
    pub fn visible(&self, sequence: usize, q_len: usize, query: usize) -> usize {
        (self.lengths[sequence] as usize + query + 1).saturating_sub(q_len)
    }

    /// The same, summed over all new tokens of all sequences.
    pub fn visible_in_all(&self, q_len: usize) -> usize {
        (0..self.sequences())
            .flat_map(|sequence| (0..q_len).map(move |query| self.visible(sequence, q_len, query)))
            .sum()
    }

    /// Why kernels for which the new tokens are a sequence's last cannot use the table, if so.
    pub fn shorter_than(&self, q_len: usize) -> Option<String> {
        let sequence = self.lengths.iter().position(|&n| (n as usize) < q_len)?;
        let length = self.lengths[sequence];
        Some(format!(
            "sequence {sequence} has {length} tokens, fewer than its {q_len} new ones"
        ))
    }

    /// The location of a token: its page, and its position in the page.
    pub fn place(&self, sequence: usize, token: usize) -> (usize, usize) {
        assert!(token < self.lengths[sequence] as usize, "token {token}");
        let first = self.indptr[sequence] as usize;
        let page = self.indices[first + token / self.page_size] as usize;
        (page, token % self.page_size)
    }

    /// A token's row if a page is rows of tokens.
    pub fn row(&self, sequence: usize, token: usize) -> usize {
        let (page, place) = self.place(sequence, token);
        page * self.page_size + place
    }

    /// A level for every row of the pool: `level` of a token's position and its sequence's length, or
    /// that of dead memory, which no token owns.
    pub(crate) fn levels(&self, level: LevelOf) -> Vec<u8> {
        let mut levels = vec![DEAD_LEVEL; self.pool_pages * self.page_size];
        for (sequence, &length) in self.lengths.iter().enumerate() {
            for token in 0..length as usize {
                levels[self.row(sequence, token)] = level(token, length as usize);
            }
        }
        levels
    }

    /// Call this before reading through the table.
    pub fn validate(&self) -> Result<(), BadPageTable> {
        let bad = |text: String| Err(BadPageTable(text));
        let sequences = self.lengths.len();
        if self.indptr.len() != sequences + 1 || self.last_page_lengths.len() != sequences {
            return bad(format!(
                "{sequences} sequences have {} offsets and {} last pages",
                self.indptr.len(),
                self.last_page_lengths.len()
            ));
        }
        if self.indptr[0] != 0 || self.indptr[sequences] as usize != self.indices.len() {
            return bad(format!(
                "offsets run from {} to {}; they must run from 0 to {}, the number of entries",
                self.indptr[0],
                self.indptr[sequences],
                self.indices.len()
            ));
        }
        for (sequence, &length) in self.lengths.iter().enumerate() {
            let pages = i64::from(self.indptr[sequence + 1]) - i64::from(self.indptr[sequence]);
            let needed = i64::from(length).max(0) as usize;
            if length < 0 || pages != needed.div_ceil(self.page_size) as i64 {
                return bad(format!(
                    "sequence {sequence} of {length} tokens has {pages} pages of {}",
                    self.page_size
                ));
            }
            let last = i64::from(length) - (pages - 1).max(0) * self.page_size as i64;
            if i64::from(self.last_page_lengths[sequence]) != last {
                return bad(format!(
                    "the last page of sequence {sequence} holds {} tokens, not {last}",
                    self.last_page_lengths[sequence]
                ));
            }
        }
        let outside = |page: &i32| usize::try_from(*page).map_or(true, |p| p >= self.pool_pages);
        if let Some(entry) = self.indices.iter().position(outside) {
            return bad(format!(
                "entry {entry} names page {}; the pool has {}",
                self.indices[entry], self.pool_pages
            ));
        }
        Ok(())
    }

    /// The table of a problem's shape.
    ///
    /// # Panics
    /// If there is no sequence, or the pages do not fit in 31 bits.
    pub(crate) fn of(lengths: &[usize], page_size: usize, seed: u64, workload: &Workload) -> Self {
        assert!(!lengths.is_empty(), "a batch has at least one sequence");
        let table = Self::scattered(lengths, page_size, seed);
        table.unwrap_or_else(|error| panic!("{}: {error}", workload.name))
    }

    /// The device's copies: offsets, entries, last page lengths, lengths.
    pub(crate) fn tensors(&self) -> [TensorSpec; 4] {
        let spec = |name, values: &[i32]| TensorSpec::indices(name, &[values.len()], values);
        // A tensor has at least one element; for a table without entries it is never read.
        let entries: &[i32] = if self.indices.is_empty() {
            &[0]
        } else {
            &self.indices
        };
        [
            spec("page_indptr", &self.indptr),
            spec("page_indices", entries),
            spec("last_page_len", &self.last_page_lengths),
            spec("kv_len", &self.lengths),
        ]
    }
}

/// The same sequences in an order of the seed: which one is long is not known before.
pub fn in_any_order(lengths: &mut [usize], seed: u64) {
    shuffle(lengths, seed, SEQUENCE_STREAM);
}

fn shuffle<T>(items: &mut [T], seed: u64, stream: u32) {
    for last in (1..items.len()).rev() {
        let other = index_below(bits(seed, stream, last as u64), last as u32 + 1);
        items.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_token_has_a_place_of_its_own() {
        for page_size in [1, 3, 16] {
            let table = PageTable::scattered(&[5, 0, 16, 1, 33], page_size, 7).unwrap();
            let mut seen = BTreeSet::new();
            for (sequence, &length) in table.lengths.iter().enumerate() {
                for token in 0..length as usize {
                    let (page, row) = table.place(sequence, token);
                    assert!(page < table.pool_pages && row < page_size);
                    assert!(seen.insert((page, row)));
                }
            }
            assert_eq!(seen.len(), table.tokens());
            assert_ne!(table.indices[0], 0, "the permutation moves pages");
        }
    }

    #[test]
    fn another_seed_gives_other_pages_and_another_order() {
        let table = |seed| PageTable::scattered(&[500, 300], 16, seed).unwrap();
        assert_eq!(table(1), table(1));
        assert_ne!(table(1).indices, table(2).indices);
        let order = |seed| {
            let mut lengths: Vec<usize> = (1..20).collect();
            in_any_order(&mut lengths, seed);
            lengths
        };
        assert_ne!(order(1), order(2));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(1..20));
    }

    #[test]
    fn what_no_token_owns_is_dead() {
        let table = PageTable::scattered(&[5, 0, 3], 4, 7).unwrap();
        let levels = table.levels(|position, _| position as u8);
        assert_eq!(levels.len(), table.pool_pages * 4);
        assert_eq!(levels[table.row(0, 4)], 4);
        let dead = levels.iter().filter(|&&level| level == DEAD_LEVEL).count();
        assert_eq!(dead, levels.len() - 8);
    }

    #[test]
    fn offsets_and_last_pages() {
        let table = PageTable::scattered(&[5, 0, 16, 1], 4, 7).unwrap();
        assert_eq!(table.indptr, [0, 2, 2, 6, 7]);
        assert_eq!(table.last_page_lengths, [1, 0, 4, 1]);
        assert_eq!(table.pool_pages, 9);
    }

    #[test]
    fn no_sequence_at_all_is_a_table_too() {
        let table = PageTable::scattered(&[0, 0], 16, 7).unwrap();
        assert!(table.indices.is_empty());
        assert_eq!(table.tensors()[1].shape, [1]);
    }

    #[test]
    fn tables_out_of_range_are_refused_with_the_entry() {
        let good = PageTable::scattered(&[40, 7], 16, 7).unwrap();
        let refused = |change: &dyn Fn(&mut PageTable), words: &str| {
            let mut table = good.clone();
            change(&mut table);
            let error = table.validate().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        refused(
            &|t| t.indices[2] = 6,
            "entry 2 names page 6; the pool has 6",
        );
        refused(&|t| t.indices[0] = -1, "entry 0 names page -1");
        refused(&|t| t.indptr[1] = 2, "sequence 0 of 40 tokens has 2 pages");
        refused(&|t| t.indptr[2] = 5, "run from 0 to 5");
        refused(&|t| t.lengths[1] = -7, "sequence 1 of -7 tokens");
        refused(
            &|t| t.lengths[1] = 17,
            "sequence 1 of 17 tokens has 1 pages",
        );
        refused(&|t| t.last_page_lengths[0] = 9, "holds 9 tokens, not 8");
        assert!(PageTable::scattered(&[1], 0, 7).is_err());
        assert!(PageTable::scattered(&[usize::MAX / 32], 16, 7).is_err());
    }
}
