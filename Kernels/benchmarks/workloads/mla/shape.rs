//! Shapes of multi-head latent attention decode.

/// Width of a latent row, and of the output.
pub const MLA_LATENT: usize = 512;
/// Width of a rotary row.
pub const MLA_ROPE: usize = 64;
/// Width of a query, and of a token in the cache: the latent part, then the rotary part.
pub const MLA_WIDTH: usize = MLA_LATENT + MLA_ROPE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlaShape {
    /// Cached tokens of each sequence, including the new ones.
    pub lengths: Vec<usize>,
    /// New tokens per sequence.
    pub q_len: usize,
    pub heads: usize,
    pub page_size: usize,
}

impl MlaShape {
    pub fn batch(&self) -> usize {
        self.lengths.len()
    }

    /// 1 / sqrt(192): a head before projection has 128 elements without rotation and 64 with.
    pub fn scale(&self) -> f32 {
        1.0 / 192f32.sqrt()
    }
}
