//! Kinds of inputs for attention: queries and keys that give scores of a known size and order.
//!
//! Uniform queries and keys give scores near zero: a softmax without a maximum, or with a short
//! polynomial for the exponential, is right on them.

use contender::{Family, Statement};
use tensor::{Fill, Shaped, Slots, DEAD};

use crate::kinds::{
    outlier_columns, scattered, uneven_rows, uniform, DRIFT, LARGE, LATE_MAXIMUM, OUTLIERS,
    UNEVEN_ROWS,
};

/// What the families of an attention problem depend on.
pub struct Attention<'a> {
    pub statement: &'a Statement,
    /// Names of the tensors; values may be a part of the keys.
    pub queries: &'static str,
    pub keys: &'static str,
    /// With the slots of their tokens, whose levels are the keys'.
    pub values: Option<(&'static str, Slots)>,
    /// Elements of a query and of a key.
    pub dim: usize,
    /// Factor of the scores.
    pub scale: f32,
    /// Stored elements per unit of a key: 1, or codes of FP8.
    pub key_codes: f32,
    /// The largest ordinary values as stored, and the largest of all.
    pub value: f32,
    pub large_value: f32,
    pub tokens: Tokens<'a>,
}

/// Where the keys of the tokens are.
#[derive(Clone, Copy)]
pub struct Tokens<'a> {
    pub slots: Slots,
    /// A level for every slot: that of its token, by its position in a sequence and the sequence's
    /// length, or [`DEAD_LEVEL`].
    pub levels: &'a Levels<'a>,
}

/// The level of a token at a position of a sequence of a length.
pub type LevelOf = fn(usize, usize) -> u8;
pub type Levels<'a> = dyn Fn(LevelOf) -> Vec<u8> + 'a;

const STEPS: usize = 16;
/// Of memory that belongs to no token.
pub const DEAD_LEVEL: u8 = STEPS as u8;

/// The largest score: its exponential overflows f32 unless the maximum is subtracted, and that of
/// its negative underflows.
const SCORE: f32 = 110.0;
/// The largest mean of a key's elements, and their distance from it: within the range of FP8 codes.
const KEY: f32 = 1.2;
const NOISE: f32 = 0.1;

impl Tokens<'_> {
    /// Ranges by level, of which there may be fewer than 16; NaN for memory of no token.
    fn shaped(self, level: LevelOf, ranges: impl Iterator<Item = (f32, f32)>) -> Shaped {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.resize(STEPS, (0.0, 0.0));
        ranges.push(DEAD);
        Shaped::by_slot(self.slots, (self.levels)(level), &ranges)
    }

    /// One range for all tokens.
    pub fn all(self, low: f32, high: f32) -> Shaped {
        self.shaped(|_, _| 0, std::iter::once((low, high)))
    }
}

impl Attention<'_> {
    pub fn families(&self) -> Vec<Family> {
        let query = self.query();
        let aligned = || uniform(0.75 * query, 1.25 * query);
        let values = || self.value_tokens().all(-self.value, self.value);
        let outliers = Shaped::flat(-1.0, 1.0).times(outlier_columns(self.dim, 40.0));
        let large_values = self.value_tokens();
        let large_values = large_values.all(-self.large_value, self.large_value);
        // FlashInfer takes scores below -5e4 for masked, before it applies the scale of FP8 keys.
        let large_queries = match self.key_codes > 1.0 {
            true => aligned(),
            false => self.signed_queries(),
        };
        let mut families = vec![
            self.family(LATE_MAXIMUM, aligned(), self.late_keys(), values()),
            self.family(DRIFT, aligned(), self.drifting_keys(), values()),
            self.family(LARGE, large_queries, self.large_keys(), large_values),
            self.family(OUTLIERS, outliers.into(), self.outlier_keys(), values()),
        ];
        let (queries, keys) = (self.uneven_queries(), self.uneven_keys());
        families.push(self.family(UNEVEN_ROWS, queries, keys, self.uneven_values()));
        families
    }

    fn family(&self, name: &'static str, queries: Fill, keys: Shaped, values: Shaped) -> Family {
        let values = self.values.map(|(name, _)| (name, values.into()));
        let fills = [(self.queries, queries), (self.keys, keys.into())];
        self.statement
            .family(name, fills.into_iter().chain(values).collect())
    }

    fn value_tokens(&self) -> Tokens<'_> {
        let slots = self.values.map_or(self.tokens.slots, |(_, slots)| slots);
        Tokens {
            slots,
            ..self.tokens
        }
    }

    /// The mean of a query's elements whose product with a key of mean [`KEY`] is [`SCORE`].
    fn query(&self) -> f32 {
        SCORE / (self.scale * self.dim as f32 * KEY)
    }

    fn query_rows(&self, ranges: &[(f32, f32)]) -> Fill {
        let elements = self.statement.tensor(self.queries).elements();
        uneven_rows(self.dim, elements, ranges).into()
    }

    /// Half of the queries are of the other sign: their scores are as far below zero.
    fn signed_queries(&self) -> Fill {
        let (low, high) = (0.75 * self.query(), 1.25 * self.query());
        self.query_rows(&[(low, high), (-high, -low)])
    }

    /// All scores of a query that is zero are equal.
    fn uneven_queries(&self) -> Fill {
        self.query_rows(&[(-3.0, 3.0), (0.0, 0.0), (-1.0, 1.0)])
    }

    /// Keys whose elements have a mean, by level.
    fn keys_around(&self, level: LevelOf, mean: impl Fn(f32) -> f32) -> Shaped {
        let around = |level| (mean(level) - NOISE, mean(level) + NOISE);
        let ranges = (0..STEPS).map(|level| around(level as f32 / (STEPS - 1) as f32));
        self.tokens
            .shaped(level, ranges.map(|range| self.code(range)))
    }

    /// Stored as codes.
    fn code(&self, (low, high): (f32, f32)) -> (f32, f32) {
        (low * self.key_codes, high * self.key_codes)
    }

    /// Some keys have a score above all before them, the last one the largest of all.
    fn late_keys(&self) -> Shaped {
        self.keys_around(late_level, |level| KEY * level)
    }

    /// Scores rise along the sequence.
    fn drifting_keys(&self) -> Shaped {
        self.keys_around(drift_level, |level| KEY * (2.0 * level - 1.0))
    }

    fn large_keys(&self) -> Shaped {
        self.keys_around(|_, _| 0, |_| KEY)
    }

    fn outlier_keys(&self) -> Shaped {
        let most = KEY / 8.0 * self.key_codes;
        let factors = outlier_columns(self.dim, 8.0);
        self.tokens.all(-most, most).times(factors)
    }

    /// Zero and constant tokens among the others.
    fn uneven_keys(&self) -> Shaped {
        let ranges = [(-1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (-NOISE, NOISE)];
        self.tokens.shaped(
            |position, _| scattered(position, 4),
            ranges.into_iter().map(|range| self.code(range)),
        )
    }

    fn uneven_values(&self) -> Shaped {
        let half = self.value / 2.0;
        let ranges = [(-self.value, self.value), (0.0, 0.0), (half, half)];
        self.value_tokens()
            .shaped(|position, _| scattered(position, 3), ranges.into_iter())
    }
}

/// Above all before it at the positions 1, 3, 7, ... and at the last one, so that every query sees
/// such a key late; 0 elsewhere.
fn late_level(position: usize, length: usize) -> u8 {
    let end = position + 1;
    let steps = STEPS - 1;
    if end == length {
        return steps as u8;
    }
    match end.is_power_of_two() {
        true => (end.ilog2() as usize * steps / (length.ilog2() as usize + 1)) as u8,
        false => 0,
    }
}

fn drift_level(position: usize, length: usize) -> u8 {
    (position * STEPS / length) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_moves_late_in_every_prefix() {
        for length in [1, 2, 3, 100, 4096] {
            let levels: Vec<u8> = (0..length).map(|at| late_level(at, length)).collect();
            assert_eq!(levels[length - 1], 15, "{length}");
            for seen in 4..length {
                let top = levels[..seen].iter().rposition(|&level| level > 0);
                let top = top.expect("a key above the others");
                assert!(top + 1 >= seen / 2, "{seen} of {length}");
                assert!(levels[..top].iter().all(|level| *level <= levels[top]));
            }
        }
    }

    #[test]
    fn drift_never_falls() {
        let levels: Vec<u8> = (0..1000).map(|at| drift_level(at, 1000)).collect();
        assert!(levels.is_sorted());
        assert_eq!((levels[0], levels[999]), (0, 15));
    }
}
