//! How much error is allowed, and how much was found.

use contender::Tolerance;
use numeric::DType;
use serde::{Deserialize, Serialize};

/// The tolerance for one output tensor: twice the error of an honest implementation in the same
/// precision on the same sample, plus a floor of a few roundings in case the honest one happens to
/// be exact. It holds for the sample as a whole and, relative to its own values, for every unit:
/// a few large rows do not excuse errors in all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub max_abs: f64,
    pub rel_l2: f64,
    /// Magnitude of the terms of an element (`Problem::magnitude`): a lower bound for what `rel_l2` is relative to.
    #[serde(skip)]
    pub(crate) magnitude: f64,
    /// For the largest error in a unit, relative to its largest value.
    #[serde(skip)]
    pub(crate) unit_max: f64,
    /// For the relative L2 error of a unit, or of a tile of the whole output.
    #[serde(skip)]
    pub(crate) unit_l2: f64,
}

/// How many times the honest error is allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// On the inputs that are timed, of which many units are known.
    Timed,
    /// On the same in a process after the first, of which fewer are: the worst of a few honest
    /// errors may be small by chance.
    Again,
    /// On other kinds of inputs: a few units tell right from wrong, not precise from less precise.
    OtherKind,
}

impl Margin {
    fn factor(self) -> f64 {
        match self {
            Margin::Timed => 2.0,
            Margin::Again => 3.0,
            Margin::OtherKind => 4.0,
        }
    }
}

/// Units with fewer elements of a tensor have only the budget of the whole: a single value may be
/// arbitrarily close to zero.
pub(crate) const UNIT_ELEMENTS_MIN: usize = 16;

/// Below what any output's type resolves.
const RELATIVE_MIN: f64 = 1e-12;

impl Budget {
    /// From the honest implementation's deviations in every unit, and the magnitude of their terms.
    pub(crate) fn new(dtype: DType, units: &[Deviations], magnitude: f64, margin: Margin) -> Self {
        let factor = margin.factor();
        let honest = Errors::of(units, magnitude);
        let floor = floor_roundings(dtype) * dtype.unit_roundoff();
        let allowed = |error: f64| factor * error + floor;
        let rel_l2 = allowed(honest.rel_l2);
        let (mut unit_max, mut unit_l2) = (f64::MAX, rel_l2);
        let large = |unit: &&Deviations| unit.each.len() >= UNIT_ELEMENTS_MIN;
        let large: Vec<_> = units.iter().filter(large).collect();
        if !large.is_empty() {
            let (mut worst_max, mut worst_l2) = (0.0f64, 0.0f64);
            for unit in large {
                if unit.largest > 0.0 {
                    worst_max = worst_max.max(unit.largest / unit.scale(magnitude));
                }
                worst_l2 = worst_l2.max(unit.rel_l2(magnitude));
            }
            (unit_max, unit_l2) = (allowed(worst_max), allowed(worst_l2));
        }
        Self {
            max_abs: factor * honest.max_abs + floor * scale(units, magnitude),
            rel_l2,
            magnitude,
            unit_max,
            unit_l2,
        }
    }

    /// From a tolerance that the problem says. What the elements may have together follows from what each may have.
    pub(crate) fn given(tolerance: Tolerance, units: &[Deviations]) -> Self {
        // An absolute tolerance is a relative one of values this large.
        let relative = tolerance.relative.max(RELATIVE_MIN);
        let magnitude = tolerance.absolute / relative;
        let max_abs = relative * scale(units, magnitude);
        let squares: f64 = units.iter().map(|unit| unit.value_squares).sum();
        let elements: usize = units.iter().map(|unit| unit.each.len()).sum();
        let typical = (squares / elements.max(1) as f64).sqrt().max(magnitude);
        Self {
            max_abs,
            rel_l2: if typical > 0.0 {
                max_abs / typical
            } else {
                0.0
            },
            magnitude,
            unit_max: relative,
            unit_l2: f64::MAX,
        }
    }

    /// What either allows.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            max_abs: self.max_abs.max(other.max_abs),
            rel_l2: self.rel_l2.max(other.rel_l2),
            magnitude: self.magnitude,
            unit_max: self.unit_max.max(other.unit_max),
            unit_l2: self.unit_l2.max(other.unit_l2),
        }
    }

    /// The largest error allowed in a unit.
    pub(crate) fn max_abs_in(&self, unit: &Deviations) -> f64 {
        if unit.each.len() < UNIT_ELEMENTS_MIN {
            return self.max_abs;
        }
        let own = self.unit_max * unit.scale(self.magnitude);
        own.min(self.max_abs)
    }

    /// The relative L2 error allowed in a unit.
    pub(crate) fn rel_l2_in(&self, unit: &Deviations) -> f64 {
        match unit.each.len() < UNIT_ELEMENTS_MIN {
            true => f64::MAX,
            false => self.unit_l2,
        }
    }
}

/// How far some elements are from their correct values, and sums over both.
#[derive(Default)]
pub(crate) struct Deviations {
    pub(crate) each: Vec<f64>,
    /// NaN if one is.
    pub(crate) largest: f64,
    squares: f64,
    /// Of the correct values.
    value_largest: f64,
    value_squares: f64,
}

/// From deviations and correct values.
impl FromIterator<(f64, f64)> for Deviations {
    fn from_iter<I: IntoIterator<Item = (f64, f64)>>(elements: I) -> Self {
        let elements = elements.into_iter();
        let mut this = Self {
            each: Vec::with_capacity(elements.size_hint().0),
            ..Self::default()
        };
        for (deviation, value) in elements {
            this.each.push(deviation);
            this.largest = larger(this.largest, deviation);
            this.squares += deviation * deviation;
            this.value_largest = this.value_largest.max(value.abs());
            this.value_squares += value * value;
        }
        this
    }
}

impl Deviations {
    /// The largest correct value, or its terms if they are larger.
    fn scale(&self, magnitude: f64) -> f64 {
        self.value_largest.max(magnitude)
    }

    pub(crate) fn rel_l2(&self, magnitude: f64) -> f64 {
        relative_l2(std::slice::from_ref(self), magnitude)
    }
}

/// The largest correct value of all units, or its terms if they are larger.
fn scale(units: &[Deviations], magnitude: f64) -> f64 {
    let units = units.iter();
    units.fold(magnitude, |scale, unit| unit.scale(scale))
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

/// Elements that a percentile is taken of: checks are part of every run, and sorting is slow.
const ORDERED_MAX: usize = 1 << 14;

impl Errors {
    /// Statistics of the units' deviations, whose terms have this magnitude, without the percentile.
    pub(crate) fn of(units: &[Deviations], magnitude: f64) -> Self {
        Self {
            max_abs: units
                .iter()
                .fold(0.0, |most, unit| larger(most, unit.largest)),
            rel_l2: relative_l2(units, magnitude),
            sampled: units.iter().map(|unit| unit.each.len()).sum(),
            ..Self::default()
        }
    }

    /// With the percentile of these units' deviations, of evenly spaced ones where there are many.
    pub(crate) fn with_percentile(self, units: &[Deviations]) -> Self {
        let step = self.sampled.div_ceil(ORDERED_MAX).max(1);
        let all = units.iter().flat_map(|unit| &unit.each);
        let mut ordered: Vec<f64> = all.copied().step_by(step).collect();
        let place = ordered.len() * 99 / 100;
        let p99 = (place < ordered.len())
            .then(|| *ordered.select_nth_unstable_by(place, f64::total_cmp).1);
        Self {
            p99_abs: p99.unwrap_or(0.0),
            ..self
        }
    }
}

/// NaN is larger than any, so that it stays visible.
fn larger(most: f64, other: f64) -> f64 {
    match other > most || other.is_nan() {
        true => other,
        false => most,
    }
}

/// The L2 norm of deviations relative to that of the correct values, or of their terms if it is larger.
fn relative_l2(units: &[Deviations], magnitude: f64) -> f64 {
    let sum = |of: fn(&Deviations) -> f64| units.iter().map(of).sum::<f64>();
    let uncancelled = magnitude * magnitude * sum(|unit| unit.each.len() as f64);
    let (error, norm) = (
        sum(|unit| unit.squares),
        sum(|unit| unit.value_squares).max(uncancelled),
    );
    // A tensor that should be zero but is not gets the largest finite error.
    match error == 0.0 {
        true => 0.0,
        false => (error / norm).sqrt().min(f64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off_by(deviations: &[f64], values: &[f64]) -> Deviations {
        let deviations = deviations.iter().copied();
        deviations.zip(values.iter().copied()).collect()
    }

    fn errors(deviations: &[f64], values: &[f64], magnitude: f64) -> Errors {
        Errors::of(&[off_by(deviations, values)], magnitude)
    }

    fn right(values: &[f64]) -> Deviations {
        off_by(&vec![0.0; values.len()], values)
    }

    #[test]
    fn statistics_of_known_deviations() {
        let errors = errors(&[0.0, 3.0, 4.0], &[10.0, 0.0, 0.0], 0.0);
        assert_eq!(
            (errors.max_abs, errors.rel_l2, errors.sampled),
            (4.0, 0.5, 3)
        );
    }

    #[test]
    fn the_percentile_is_that_of_all_units() {
        let deviations: Vec<f64> = (0..50_000).map(f64::from).collect();
        let halves = deviations.chunks(25_000);
        let units: Vec<_> = halves.map(|half| off_by(half, half)).collect();
        let p99 = Errors::of(&units, 0.0).with_percentile(&units).p99_abs;
        assert!((p99 / 49_500.0 - 1.0).abs() < 1e-3, "{p99}");
    }

    #[test]
    fn what_should_be_zero_and_is_not_has_the_largest_error() {
        assert_eq!(errors(&[1.0], &[0.0], 0.0).rel_l2, f64::MAX);
    }

    #[test]
    fn units_add_up_and_a_nan_stays_visible() {
        let units = [off_by(&[3.0], &[6.0]), off_by(&[4.0, 0.0], &[8.0, 0.0])];
        let errors = Errors::of(&units, 0.0);
        assert_eq!((errors.max_abs, errors.rel_l2), (4.0, 0.5));
        let lost = [
            off_by(&[f64::NAN, 1.0], &[1.0, 1.0]),
            off_by(&[5.0], &[1.0]),
        ];
        let errors = Errors::of(&lost, 0.0);
        assert!(errors.max_abs.is_nan() && errors.rel_l2 == f64::MAX);
    }

    #[test]
    fn an_exact_honest_result_still_leaves_one_rounding() {
        let budget = Budget::new(DType::Bf16, &[right(&[1.0, -2.0])], 0.0, Margin::Timed);
        assert_eq!(budget.max_abs, 2.0 / 256.0);
        let exact = Budget::new(DType::I32, &[right(&[7.0; 16])], 0.0, Margin::Timed);
        assert_eq!(exact, Budget::default());
    }

    #[test]
    fn a_small_unit_is_held_to_its_own_values() {
        let unit = |value: f64| off_by(&[value / 512.0; 16], &[value; 16]);
        let budget = Budget::new(DType::Bf16, &[unit(1.0), unit(0.01)], 0.0, Margin::Timed);
        let relative = 2.0 / 512.0 + 1.0 / 256.0;
        assert_eq!(budget.max_abs, relative);
        assert_eq!(budget.max_abs_in(&right(&[1.0; 16])), relative);
        assert_eq!(budget.max_abs_in(&right(&[0.01; 16])), relative * 0.01);
        assert!((budget.rel_l2_in(&right(&[0.01; 16])) - relative).abs() < 1e-12);
        // A value on its own may be close to zero: its error is compared with the others' values.
        assert_eq!(budget.max_abs_in(&right(&[0.01; 2])), relative);
    }

    #[test]
    fn a_given_tolerance_is_kept_as_it_is_said() {
        let given = |relative, absolute, values: Vec<f64>| {
            let tolerance = Tolerance { relative, absolute };
            Budget::given(tolerance, &[right(&values)])
        };
        let budget = given(0.01, 0.0, vec![4.0; 16]);
        assert_eq!((budget.max_abs, budget.rel_l2), (0.04, 0.01));
        assert_eq!(budget.max_abs_in(&right(&[0.5; 16])), 0.005);
        // An element that may have all of it in every place has the L2 error that follows.
        let mixed = given(0.01, 0.0, [vec![4.0; 8], vec![0.0; 8]].concat());
        assert!(mixed.rel_l2 > 0.01);
        let absolute = given(0.0, 0.25, vec![4.0; 16]);
        assert!((absolute.max_abs - 0.25).abs() < 1e-9);
        assert!((absolute.max_abs_in(&right(&[0.0; 16])) - 0.25).abs() < 1e-9);
        assert_eq!(given(0.01, 0.0, vec![0.0; 16]).max_abs, 0.0);
    }

    #[test]
    fn what_cancels_is_held_to_the_precision_of_its_terms() {
        let unit = DType::F32.unit_roundoff();
        let budget = Budget::new(DType::F32, &[right(&[0.0])], 4.0, Margin::Timed);
        assert_eq!(budget.max_abs, 4.0 * 32.0 * unit);
        assert_eq!(errors(&[2.0], &[0.0], 4.0).rel_l2, 0.5);
        // Terms that are smaller than the sum change nothing.
        let (with, without) = (errors(&[1.0], &[8.0], 4.0), errors(&[1.0], &[8.0], 0.0));
        assert_eq!(with, without);
    }
}
