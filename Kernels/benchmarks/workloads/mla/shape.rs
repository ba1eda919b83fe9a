//! Shapes of decode with multi-head latent attention.

/// Width of a latent row, and of the output.
pub const MLA_LATENT: usize = 512;
/// Width of a rotary row.
pub const MLA_ROPE: usize = 64;
/// Width of a query, and of a token in the cache: the latent part, then the rotary one.
pub const MLA_WIDTH: usize = MLA_LATENT + MLA_ROPE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlaShape {
    /// Cached tokens of each sequence, the new ones included.
    pub lengths: Vec<usize>,
    /// New tokens of each sequence.
    pub q_len: usize,
    pub heads: usize,
    pub page_size: usize,
}

impl MlaShape {
    pub fn batch(&self) -> usize {
        self.lengths.len()
    }

    /// 1 / sqrt(192): of the head before projection, 128 without and 64 with rotation.
    pub fn scale(&self) -> f32 {
        1.0 / 192f32.sqrt()
    }
}
