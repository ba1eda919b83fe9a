//! Element types of a cache.

use numeric::{bits, uniform, DType};
use serde::{Deserialize, Serialize};

/// The largest code of an FP8 cache: most of the type's range, as with calibrated scales.
pub(crate) const CODE: f32 = 240.0;

const SCALE_STREAM: u32 = 0x5CA1E;

/// Element type of a cache.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum KvType {
    /// The type of the queries.
    #[default]
    Same,
    /// FP8 e4m3 codes of one scale, or of one for all keys and one for all values.
    #[serde(rename = "fp8_e4m3")]
    Fp8,
}

impl KvType {
    /// The cache's type for queries of a type, and its largest elements.
    pub(crate) fn stored(self, queries: DType) -> (DType, f32) {
        match self {
            KvType::Same => (queries, 1.0),
            KvType::Fp8 => (DType::F8E4M3, CODE),
        }
    }

    /// Factors of keys and values: for FP8, scales of the seed that bring its codes to about 1.
    pub fn scales(self, seed: u64) -> (f32, f32) {
        let about =
            |middle: f32, index| middle * uniform(bits(seed, SCALE_STREAM, index), 0.9, 1.1);
        match self {
            KvType::Same => (1.0, 1.0),
            KvType::Fp8 => (about(0.004, 0), about(0.005, 1)),
        }
    }
}
