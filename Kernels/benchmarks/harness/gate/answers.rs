//! Correct answers for a sample of units, for the inputs of one seed.

use std::ops::Range;

use contender::{Family, Problem, Slice};
use numeric::{bits, index_below};
use rayon::prelude::*;
use tensor::{Inputs, TensorSpec};

use crate::budget::Deviations;
use crate::{Budget, Failure, Margin};

/// Random stream for the choice of units, separate from those of tensors.
const UNIT_STREAM: u32 = u32::MAX;

/// The oracle's and the honest implementation's values for the same slices of one unit.
pub(crate) struct Unit {
    pub(crate) number: usize,
    pub(crate) oracle: Vec<Slice>,
    pub(crate) honest: Vec<Slice>,
}

/// The correct values of some units.
pub struct Answers {
    pub seed: u64,
    /// Of fewer units than the budget was made from.
    pub(crate) small: bool,
    pub(crate) units: Vec<Unit>,
    /// If the inputs are of another kind than those that are timed.
    pub(crate) kind: Option<Kind>,
}

/// Inputs of another kind, and the tolerance on them.
pub(crate) struct Kind {
    pub(crate) family: Family,
    pub(crate) budgets: Vec<Budget>,
}

/// A tolerance per tensor, from the honest answers for some units.
pub(crate) fn budgets<'u>(
    problem: &dyn Problem,
    units: impl Iterator<Item = &'u Unit> + Clone,
    margin: Margin,
) -> Vec<Budget> {
    let of_tensor = |(tensor, spec): (usize, &TensorSpec)| {
        if problem.is_exact(tensor) {
            return Budget::default();
        }
        let honest: Vec<_> = units
            .clone()
            .map(|unit| unit.honest_deviations(tensor))
            .collect();
        if let Some(tolerance) = problem.tolerance(tensor) {
            return Budget::given(tolerance, &honest);
        }
        Budget::new(spec.dtype, &honest, problem.magnitude(tensor), margin)
    };
    problem
        .tensors()
        .iter()
        .enumerate()
        .map(of_tensor)
        .collect()
}

impl Answers {
    /// For inputs of another kind.
    pub(crate) fn of_family(
        problem: &dyn Problem,
        family: Family,
        seed: u64,
        units: usize,
        entropy: u64,
    ) -> Result<Self, Failure> {
        let mut answers = Self::on(problem, &family.tensors, seed, units, entropy)
            .map_err(|failure| failure.on(family.name))?;
        let budgets = budgets(problem, answers.units.iter(), Margin::OtherKind);
        answers.kind = Some(Kind { family, budgets });
        Ok(answers)
    }

    /// For `units` units of the inputs of `seed`, drawn by `entropy`.
    pub fn new(
        problem: &dyn Problem,
        seed: u64,
        units: usize,
        entropy: u64,
    ) -> Result<Self, Failure> {
        Self::on(problem, problem.tensors(), seed, units, entropy)
    }

    fn on(
        problem: &dyn Problem,
        tensors: &[TensorSpec],
        seed: u64,
        units: usize,
        entropy: u64,
    ) -> Result<Self, Failure> {
        let chosen = sample_units(problem.units(), units, entropy);
        Self::of_units(problem, tensors, seed, chosen)
    }

    /// For these units of the inputs of `seed`.
    fn of_units(
        problem: &dyn Problem,
        tensors: &[TensorSpec],
        seed: u64,
        chosen: Vec<usize>,
    ) -> Result<Self, Failure> {
        let inputs = Inputs::new(tensors, seed);
        let units = match problem.ask(&inputs, &chosen) {
            Some(asked) => {
                let asked = asked.map_err(Failure::Asked)?;
                assert_eq!(asked.len(), chosen.len(), "an answer for every unit");
                let units = chosen.into_iter().zip(asked);
                units
                    .map(|(unit, oracle)| {
                        let honest = rounded(&oracle, tensors);
                        Unit::new(unit, oracle, honest)
                    })
                    .collect::<Result<_, Failure>>()?
            }
            None => chosen
                .into_par_iter()
                .map(|unit| {
                    let (oracle, honest) = rayon::join(
                        || problem.oracle(&inputs, unit),
                        || problem.honest(&inputs, unit),
                    );
                    Unit::new(unit, oracle, honest)
                })
                .collect::<Result<_, Failure>>()?,
        };
        Ok(Self {
            seed,
            small: false,
            units,
            kind: None,
        })
    }

    /// To the same inputs, of some units whose part of a tensor lies in a range. None if there is none where one should
    /// be: units need not follow each other at equal distances.
    pub(crate) fn within(
        &self,
        problem: &dyn Problem,
        tensor: usize,
        range: &Range<usize>,
    ) -> Result<Option<Self>, Failure> {
        let chosen = self.units_around(tensor, range);
        let mut answers = Self::of_units(problem, problem.tensors(), self.seed, chosen)?;
        answers.units.retain(|unit| {
            let mut slices = unit.slices(tensor);
            slices.any(|slice| range.contains(&slice.start))
        });
        Ok((!answers.units.is_empty()).then_some(answers))
    }

    /// Units that would begin at some places of a range if all were as far apart as the known ones around it.
    fn units_around(&self, tensor: usize, range: &Range<usize>) -> Vec<usize> {
        const PLACES: usize = 8;
        let known = |unit: &Unit| Some((unit.slices(tensor).next()?.start, unit.number));
        let known: Vec<_> = self.units.iter().filter_map(known).collect();
        let below = known.iter().rfind(|(start, _)| *start <= range.start);
        let above = known.iter().find(|(start, _)| *start >= range.end);
        let Some((&(start, first), &(end, last))) = below.zip(above.or(known.last())) else {
            return Vec::new();
        };
        if end <= start || last <= first {
            return Vec::new();
        }
        let unit_at = |place: usize| {
            let units = (place - start) as u128 * (last - first) as u128 / (end - start) as u128;
            first + units as usize
        };
        let places =
            (0..PLACES).map(|place| range.start + (2 * place + 1) * range.len() / (2 * PLACES));
        let mut units: Vec<usize> = places.map(unit_at).filter(|unit| *unit <= last).collect();
        units.dedup();
        units
    }

    /// The correct slices of one tensor.
    pub(crate) fn oracle(&self, tensor: usize) -> impl Iterator<Item = &Slice> {
        self.units.iter().flat_map(move |unit| unit.slices(tensor))
    }

    /// The unit of an element, and its correct value, if it was sampled.
    pub(crate) fn at(&self, tensor: usize, index: usize) -> Option<(usize, f64)> {
        let in_slice = |slice: &Slice| {
            let offset = index.checked_sub(slice.start)?;
            let value = slice.values.get(offset).copied();
            value.filter(|_| slice.tensor == tensor)
        };
        let in_unit = |unit: &Unit| {
            let value = unit.oracle.iter().find_map(in_slice)?;
            Some((unit.number, value))
        };
        self.units.iter().find_map(in_unit)
    }
}

/// The oracle's slices as the outputs can hold them.
fn rounded(slices: &[Slice], tensors: &[TensorSpec]) -> Vec<Slice> {
    let round = |slice: &Slice| {
        let dtype = tensors[slice.tensor].dtype;
        Slice {
            values: slice
                .values
                .iter()
                .map(|value| dtype.round(*value))
                .collect(),
            ..slice.clone()
        }
    };
    slices.iter().map(round).collect()
}

impl Unit {
    fn new(number: usize, oracle: Vec<Slice>, honest: Vec<Slice>) -> Result<Self, Failure> {
        if !(all_finite(&oracle) && all_finite(&honest)) {
            return Err(Failure::Oracle { unit: number });
        }
        assert!(
            same_places(&oracle, &honest),
            "oracle and honest differ in unit {number}"
        );
        Ok(Self {
            number,
            oracle,
            honest,
        })
    }

    /// The correct slices of one tensor.
    pub(crate) fn slices(&self, tensor: usize) -> impl Iterator<Item = &Slice> {
        let slices = self.oracle.iter();
        slices.filter(move |slice| slice.tensor == tensor)
    }

    /// How far the honest values of one tensor are off.
    pub(crate) fn honest_deviations(&self, tensor: usize) -> Deviations {
        fn of(slices: &[Slice], tensor: usize) -> impl Iterator<Item = f64> + '_ {
            let slices = slices.iter().filter(move |slice| slice.tensor == tensor);
            slices.flat_map(|slice| slice.values.iter().copied())
        }
        let pairs = of(&self.honest, tensor).zip(of(&self.oracle, tensor));
        pairs
            .map(|(honest, oracle)| ((honest - oracle).abs(), oracle))
            .collect()
    }
}

fn all_finite(slices: &[Slice]) -> bool {
    slices
        .iter()
        .flat_map(|slice| &slice.values)
        .all(|value| value.is_finite())
}

fn same_places(a: &[Slice], b: &[Slice]) -> bool {
    let place = |slice: &Slice| (slice.tensor, slice.start, slice.values.len());
    a.iter().map(place).eq(b.iter().map(place))
}

/// `count` distinct units in ascending order, including the first and the last unless it is one.
fn sample_units(units: usize, count: usize, entropy: u64) -> Vec<usize> {
    if units <= count {
        return (0..units).collect();
    }
    let below = u32::try_from(units).expect("fewer than 2^32 units");
    let mut chosen = std::collections::BTreeSet::new();
    if count > 1 {
        chosen.extend([0, units - 1]);
    }
    let mut draw = 0;
    while chosen.len() < count {
        chosen.insert(index_below(bits(entropy, UNIT_STREAM, draw), below) as usize);
        draw += 1;
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn samples_are_distinct_sorted_and_hold_both_ends(
            units in 1usize..5000, count in 2usize..100, seed in any::<u64>()
        ) {
            let sample = sample_units(units, count, seed);
            prop_assert_eq!(sample.len(), units.min(count));
            prop_assert!(sample.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(sample[0], 0);
            prop_assert_eq!(*sample.last().unwrap(), units - 1);
        }
    }

    #[test]
    fn a_sample_of_one_may_be_any() {
        let drawn = |entropy| sample_units(1000, 1, entropy);
        assert!((0..20).all(|entropy| drawn(entropy).len() == 1));
        assert_ne!(drawn(1), drawn(2));
    }
}
