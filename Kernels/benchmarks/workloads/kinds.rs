//! Kinds of inputs: contents that uniform numbers never show, for a contender to be right on.
//!
//! Magnitudes are such that an honest kernel with f32 sums is right in every type: no product or sum
//! overflows f16, and scores stay within what f32 resolves.

use numeric::{bits, index_below};
use tensor::{Fill, Shaped, Slots};

/// The running maximum of a softmax moves until the very end.
pub const LATE_MAXIMUM: &str = "late_maximum";
/// A few columns are much larger than all others.
pub const OUTLIERS: &str = "outliers";
/// Far from zero: a sum that is not normalised, or not normalised as it goes, overflows.
pub const LARGE: &str = "large";
/// Some rows are zero or constant, others differ in scale by orders of magnitude.
pub const UNEVEN_ROWS: &str = "uneven_rows";
/// Values change slowly along the row or the sequence.
pub const DRIFT: &str = "drift";

/// Rows after which a pattern of levels repeats.
const PERIOD: usize = 61;
const PATTERN_STREAM: u32 = 0x9A77;

pub fn uniform(low: f32, high: f32) -> Fill {
    Fill::Uniform { low, high }
}

pub fn constant(value: f32) -> Fill {
    uniform(value, value)
}

/// Rows of `columns` in a tensor of `elements`, each of one of the ranges.
pub fn uneven_rows(columns: usize, elements: usize, ranges: &[(f32, f32)]) -> Shaped {
    let slots = Slots::repeating(columns, PERIOD, elements);
    Shaped::by_slot(slots, pattern(PERIOD, ranges.len()), ranges)
}

/// A level for each slot, in no order, all about as often.
fn pattern(slots: usize, levels: usize) -> Vec<u8> {
    (0..slots).map(|slot| scattered(slot, levels)).collect()
}

/// A level below `levels` for a place.
pub fn scattered(place: usize, levels: usize) -> u8 {
    index_below(bits(0, PATTERN_STREAM, place as u64), levels as u32) as u8
}

/// Factors of a row's columns: one in 64, and at least four, are this much larger.
pub fn outlier_columns(columns: usize, factor: f32) -> Vec<f32> {
    let outliers = (columns / 64).max(4).min(columns);
    let step = columns / outliers;
    let is_outlier = |column: usize| column % step == step / 2;
    let columns = 0..columns;
    columns
        .map(|column| if is_outlier(column) { factor } else { 1.0 })
        .collect()
}

/// Factors that rise along a row from `first` to `last`.
pub fn rising_columns(columns: usize, first: f32, last: f32) -> Vec<f32> {
    let step = (last - first) / (columns.max(2) - 1) as f32;
    let columns = 0..columns;
    columns.map(|column| first + step * column as f32).collect()
}
