//! Shapes of multi-head latent attention decode.

use serde::{Deserialize, Serialize};

use crate::given;
use crate::paged::KvType;

/// Width of a latent row, and of the output.
pub const MLA_LATENT: usize = 512;
/// Width of a rotary row.
pub const MLA_ROPE: usize = 64;
/// Width of a query, and of a token in the cache: the latent part, then the rotary part.
pub const MLA_WIDTH: usize = MLA_LATENT + MLA_ROPE;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlaShape {
    /// Cached tokens of each sequence, including the new ones.
    pub lengths: Vec<usize>,
    /// New tokens per sequence.
    #[serde(default = "one")]
    pub q_len: usize,
    pub heads: usize,
    #[serde(default = "sixty_four")]
    pub page_size: usize,
    #[serde(default, rename = "kv_dtype")]
    pub kv_type: KvType,
}

fn one() -> usize {
    1
}

fn sixty_four() -> usize {
    64
}

impl MlaShape {
    /// Why nobody can be asked to compute it, if so.
    pub fn check(&self) -> Result<(), String> {
        let tokens = given::total("lengths", &self.lengths)?;
        given::check_sizes(&[("tokens", tokens), ("width", MLA_WIDTH)])?;
        let queries = [
            ("sequences", self.batch()),
            ("q_len", self.q_len),
            ("heads", self.heads),
            ("width", MLA_WIDTH),
        ];
        given::check_sizes(&queries)?;
        given::check_sizes(&[
            ("sequences", self.batch()),
            ("page_size", self.page_size),
            ("width", MLA_WIDTH),
        ])?;
        given::check_lengths(&self.lengths, self.q_len)
    }

    pub fn batch(&self) -> usize {
        self.lengths.len()
    }

    /// 1 / sqrt(192): a head before projection has 128 elements without rotation and 64 with.
    pub fn scale(&self) -> f32 {
        1.0 / 192f32.sqrt()
    }
}
