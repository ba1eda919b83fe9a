//! How much error is allowed, and how much was found.

use numeric::DType;
use serde::{Deserialize, Serialize};

/// The tolerance for one output tensor: twice the error of an honest implementation in the same
/// precision on the same sample, plus a floor of a few roundings in case the honest one happens to
/// be exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub max_abs: f64,
    pub rel_l2: f64,
    /// Magnitude of the terms of an element (`Problem::magnitude`): a lower bound for what `rel_l2` is relative to.
    #[serde(skip)]
    pub(crate) magnitude: f64,
}

const HONEST_FACTOR: f64 = 2.0;

impl Budget {
    /// From the honest implementation's deviations and the oracle's values, element by element, and
    /// the magnitude of their terms.
    pub(crate) fn new(dtype: DType, deviations: &[f64], values: &[f64], magnitude: f64) -> Self {
        let honest = Errors::of(deviations, values, magnitude);
        let scale = values
            .iter()
            .fold(magnitude, |scale, value| scale.max(value.abs()));
        let floor = floor_roundings(dtype) * dtype.unit_roundoff();
        Self {
            max_abs: HONEST_FACTOR * honest.max_abs + floor * scale,
            rel_l2: HONEST_FACTOR * honest.rel_l2 + floor,
            magnitude,
        }
    }
}

/// Unit roundoffs that are always allowed: one for a narrow type, where the rounding of the result
/// dominates; more for f32, where summation order does, and terms may cancel.
fn floor_roundings(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 32.0,
        _ => 1.0,
    }
}

/// Errors of one output tensor against the oracle, over the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    pub tensor: String,
    pub max_abs: f64,
    pub p99_abs: f64,
    pub rel_l2: f64,
    pub budget: Budget,
    /// Elements compared with the oracle.
    pub sampled: usize,
}

impl Errors {
    /// Statistics of the absolute deviations from `values`, whose terms have this magnitude.
    pub(crate) fn of(deviations: &[f64], values: &[f64], magnitude: f64) -> Self {
        // NaN sorts as the largest value, so that it stays visible.
        let largest = deviations.iter().copied().max_by(f64::total_cmp);
        let mut ordered = deviations.to_vec();
        let place = ordered.len() * 99 / 100;
        let p99 = (place < ordered.len())
            .then(|| *ordered.select_nth_unstable_by(place, f64::total_cmp).1);
        let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        let uncancelled = magnitude * magnitude * values.len() as f64;
        let (error, norm) = (squares(deviations), squares(values).max(uncancelled));
        Self {
            max_abs: largest.unwrap_or(0.0),
            p99_abs: p99.unwrap_or(0.0),
            // A tensor that should be zero but is not gets the largest finite error.
            rel_l2: if error == 0.0 {
                0.0
            } else {
                (error / norm).sqrt().min(f64::MAX)
            },
            sampled: values.len(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_known_deviations() {
        let errors = Errors::of(&[0.0, 3.0, 4.0], &[10.0, 0.0, 0.0], 0.0);
        assert_eq!(
            (errors.max_abs, errors.rel_l2, errors.sampled),
            (4.0, 0.5, 3)
        );
        assert_eq!(Errors::of(&[1.0], &[0.0], 0.0).rel_l2, f64::MAX);
    }

    #[test]
    fn an_exact_honest_result_still_leaves_one_rounding() {
        let budget = Budget::new(DType::Bf16, &[0.0, 0.0], &[1.0, -2.0], 0.0);
        assert_eq!(budget.max_abs, 2.0 / 256.0);
        let exact = Budget::new(DType::I32, &[0.0], &[7.0], 0.0);
        assert_eq!(exact, Budget::default());
    }

    #[test]
    fn what_cancels_is_held_to_the_precision_of_its_terms() {
        let unit = DType::F32.unit_roundoff();
        let budget = Budget::new(DType::F32, &[0.0], &[0.0], 4.0);
        assert_eq!(budget.max_abs, 4.0 * 32.0 * unit);
        assert_eq!(Errors::of(&[2.0], &[0.0], 4.0).rel_l2, 0.5);
        // Terms that are smaller than the sum change nothing.
        let (with, without) = (
            Errors::of(&[1.0], &[8.0], 4.0),
            Errors::of(&[1.0], &[8.0], 0.0),
        );
        assert_eq!(with, without);
    }
}
