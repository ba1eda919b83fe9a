//! Shapes of decode attention over a paged cache.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::given;
use crate::paged::{KvType, PageTable};

/// Axis order within a page.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum KvLayout {
    /// [page_size, kv_heads, head_dim]: the heads of a token are contiguous.
    #[default]
    Nhd,
    /// [kv_heads, page_size, head_dim]: the tokens of a head are contiguous.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeShape {
    /// Cached tokens of each sequence, including the new ones.
    pub lengths: Vec<usize>,
    /// New tokens per sequence: 1, or more with speculative decoding.
    #[serde(default = "one")]
    pub q_len: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    #[serde(default = "sixteen")]
    pub page_size: usize,
    #[serde(default)]
    pub layout: KvLayout,
    #[serde(default, rename = "kv_dtype")]
    pub kv_type: KvType,
}

fn one() -> usize {
    1
}

fn sixteen() -> usize {
    16
}

impl DecodeShape {
    /// Why nobody can be asked to compute it, if so.
    pub fn check(&self) -> Result<(), String> {
        let tokens = given::total("lengths", &self.lengths)?;
        let (heads, kv_heads) = (self.heads, self.kv_heads);
        let sizes = [
            ("tokens", tokens),
            ("kv_heads", kv_heads),
            ("head_dim", self.head_dim),
        ];
        given::check_sizes(&sizes)?;
        let queries = [
            ("sequences", self.batch()),
            ("q_len", self.q_len),
            ("heads", heads),
            ("head_dim", self.head_dim),
        ];
        given::check_sizes(&queries)?;
        let pages = [
            ("sequences", self.batch()),
            ("page_size", self.page_size),
            ("kv_heads", kv_heads),
            ("head_dim", self.head_dim),
        ];
        given::check_sizes(&pages)?;
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!(
                "{heads} heads, which is not a multiple of {kv_heads} KV heads"
            ));
        }
        given::check_lengths(&self.lengths, self.q_len)
    }

    pub fn batch(&self) -> usize {
        self.lengths.len()
    }

    /// Query heads per KV head.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
    /// 1 / sqrt(head_dim).
    pub fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    /// First element of a token's row of one head in the pools of keys and of values.
    pub fn cache_row(
        &self,
        table: &PageTable,
        sequence: usize,
        token: usize,
        head: usize,
    ) -> usize {
        let (page, place) = table.place(sequence, token);
        let row = match self.layout {
            KvLayout::Nhd => (page * self.page_size + place) * self.kv_heads + head,
            KvLayout::Hnd => (page * self.kv_heads + head) * self.page_size + place,
        };
        row * self.head_dim
    }

    /// First element of a row of queries or of the output.
    pub fn query_row(&self, sequence: usize, query: usize, head: usize) -> usize {
        ((sequence * self.q_len + query) * self.heads + head) * self.head_dim
    }
}
