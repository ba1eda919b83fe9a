//! Shapes of decode attention over a paged cache.

use std::fmt;

/// Order of the axes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KvLayout {
    /// [page_size, kv_heads, head_dim]: the heads of a token lie together.
    Nhd,
    /// [kv_heads, page_size, head_dim]: the tokens of a head lie together.
    Hnd,
}

impl fmt::Display for KvLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            KvLayout::Nhd => "nhd",
            KvLayout::Hnd => "hnd",
        })
    }
}

/// Type of the elements of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KvType {
    /// That of the queries.
    Same,
    /// FP8 e4m3, with one scale for all keys and one for all values.
    Fp8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeShape {
    /// Cached tokens of each sequence, the new ones included.
    pub lengths: Vec<usize>,
    /// New tokens of each sequence: 1, or more when tokens are speculated.
    pub q_len: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub page_size: usize,
    pub layout: KvLayout,
    pub kv_type: KvType,
}

impl DecodeShape {
    pub fn batch(&self) -> usize {
        self.lengths.len()
    }

    /// Heads of the queries that share a head of the cache.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}
