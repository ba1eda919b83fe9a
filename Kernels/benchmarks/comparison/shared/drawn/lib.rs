//! Problems that are drawn from a seed: of every kind that kernels must tell apart, as large as the limits allow.

mod attention;
mod norms;
mod paged;
mod products;
mod training;

pub use attention::{nsa, prefill, PrefillLimits};
pub use norms::{norm, NormLimits};
pub use paged::{decode, latent};
pub use products::{dense, grouped};
pub use training::training;

use numeric::{bits, index_below};

/// Random numbers of one problem among those of a seed.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    pub seed: u64,
    pub case: u64,
}

impl Draw {
    /// Of so many problems.
    pub fn all(seed: u64, cases: u64) -> impl Iterator<Item = Self> {
        (0..cases).map(move |case| Self { seed, case })
    }

    /// A number below `below`, the same whenever it is asked from this stream.
    pub fn below(&self, stream: u32, below: usize) -> usize {
        index_below(bits(self.seed, stream, self.case), below as u32) as usize
    }

    pub fn one_of<T: Copy>(&self, stream: u32, from: &[T]) -> T {
        from[self.below(stream, from.len())]
    }

    /// Of alternatives that take turns: every one gets its share.
    fn turn<T: Copy>(&self, from: &[T]) -> T {
        from[self.case as usize % from.len()]
    }
}
