//! Compares a set's outputs with the correct answers.

use std::ops::Range;

use contender::{Buffer, Slice};
use device::{Comparison, Device, Tiles, Tolerance};
use numeric::DType;
use rayon::prelude::*;
use tensor::TensorSpec;

use crate::answers::Unit;
use crate::budget::{Deviations, UNIT_ELEMENTS_MIN};
use crate::buffers::poison_byte;
use crate::element::value_at;
use crate::part::{tile_elements, tiles, Part};
use crate::{Answers, Budget, BufferSet, Element, Errors, Failure, Judge, Poison};

/// Fails if an output element is not finite, or still holds poison that no answer contains.
pub(crate) fn check_written(set: &BufferSet, answers: &Answers) -> Result<(), Failure> {
    for (tensor, spec) in set.specs().iter().enumerate() {
        if spec.role.is_written() {
            for range in spec.written_ranges() {
                check_range_written(set, tensor, range, answers)?;
            }
        }
    }
    Ok(())
}

fn check_range_written(
    set: &BufferSet,
    tensor: usize,
    range: Range<usize>,
    answers: &Answers,
) -> Result<(), Failure> {
    let (device, spec) = (set.device(), &set.specs()[tensor]);
    let start = set.buffers()[tensor].address + range.start * spec.dtype.size_bytes();
    let (index, count) = if spec.dtype.is_float() {
        let found = device.non_finite(start, spec.dtype, range.len())?;
        (found.first, found.count)
    } else if set.last_poison() == Poison::NotANumber {
        poisoned_integers(device, spec, start, range.len())?
    } else {
        // A count may equal garbage by chance.
        (None, 0)
    };
    let Some(index) = index.map(|index| range.start + index) else {
        return Ok(());
    };
    let poisoned = set.poisoned(tensor, index, 1)? == 1;
    let first = Box::new(Element::read(set, tensor, index, Some(answers))?);
    Err(match poisoned {
        true => Failure::Unwritten { first, count },
        false => Failure::NonFinite { first, count },
    })
}

fn poisoned_integers(
    device: &dyn Device,
    spec: &TensorSpec,
    address: usize,
    elements: usize,
) -> Result<(Option<usize>, u64), Failure> {
    let mut bytes = vec![0; elements * spec.dtype.size_bytes()];
    device.read(address, &mut bytes)?;
    // Every byte is a code of pairs: only several poisoned ones in a row are none that were written.
    let run = if spec.dtype.is_pair() { 8 } else { 1 };
    let poison = vec![poison_byte(spec); run * spec.dtype.size_bytes()];
    let mut poisoned = bytes
        .chunks_exact(poison.len())
        .enumerate()
        .filter(|(_, elements)| *elements == poison)
        .map(|(index, _)| index * run);
    let first = poisoned.next();
    let count = poisoned.count() + usize::from(first.is_some());
    Ok((first, (count * run) as u64))
}

/// Compares the sampled slices of some units with the oracle: the errors of each output tensor, in order.
pub(crate) fn check_sample(
    set: &BufferSet,
    answers: &Answers,
    units: &[usize],
    budgets: &[Budget],
) -> Result<Vec<Errors>, Failure> {
    let (mut all, mut fault) = (Vec::new(), None);
    let small = answers.small || units.len() < answers.units.len();
    let units: Vec<&Unit> = units.iter().map(|place| &answers.units[*place]).collect();
    for (tensor, spec) in set.specs().iter().enumerate() {
        if spec.role.is_written() {
            let sample = Sample::read(set, &units, tensor)?;
            let errors = Errors::of(&sample.deviations, budgets[tensor].magnitude);
            // Nobody reports the errors of a small sample.
            let errors = match small {
                true => errors,
                false => errors.with_percentile(&sample.deviations),
            };
            let errors = Errors {
                tensor: spec.name.to_owned(),
                budget: budgets[tensor],
                ..errors
            };
            if fault.is_none() {
                fault = sample.fault(spec, &errors, small);
                if let Some((_, index)) = fault {
                    fail_if_poisoned(set, tensor, index, Some(answers))?;
                }
            }
            all.push(errors);
        }
    }
    match fault {
        None => Ok(all),
        Some((what, _)) => Err(Failure::Inaccurate { what, errors: all }),
    }
}

/// Fails with the right name if a wrong element is one that was never written; what was sampled is looked through for
/// more.
fn fail_if_poisoned(
    set: &BufferSet,
    tensor: usize,
    index: usize,
    answers: Option<&Answers>,
) -> Result<(), Failure> {
    if set.poisoned(tensor, index, 1)? == 0 {
        return Ok(());
    }
    let mut count = 0;
    for slice in answers.iter().flat_map(|answers| answers.oracle(tensor)) {
        count += set.poisoned(tensor, slice.start, slice.values.len())?;
    }
    Err(Failure::Unwritten {
        first: Box::new(Element::read(set, tensor, index, answers)?),
        count: count.max(1),
    })
}

/// Fewer are compared sooner than another thread wakes up.
const ELEMENTS_PER_THREAD: usize = 16 << 10;

/// The sampled elements of one tensor, unit by unit.
struct Sample<'a> {
    tensor: usize,
    units: &'a [&'a Unit],
    copies: Vec<Vec<Vec<u8>>>,
    deviations: Vec<Deviations>,
}

impl<'a> Sample<'a> {
    fn read(set: &BufferSet, units: &'a [&'a Unit], tensor: usize) -> Result<Self, Failure> {
        let (dtype, whole) = (set.specs()[tensor].dtype, set.buffers()[tensor]);
        let place = |slice: &Slice| Buffer {
            address: whole.address + slice.start * dtype.size_bytes(),
            bytes: slice.values.len() * dtype.size_bytes(),
        };
        let slices = || units.iter().flat_map(|unit| unit.slices(tensor));
        let places: Vec<Buffer> = slices().map(place).collect();
        let mut read = set.device().read_all(&places)?.into_iter();
        let counts = units.iter().map(|unit| unit.slices(tensor).count());
        let copies: Vec<Vec<Vec<u8>>> = counts
            .map(|each| read.by_ref().take(each).collect())
            .collect();
        // A sample of wide rows has half a million elements, and is compared in every fourth round.
        let elements: usize = slices().map(|slice| slice.values.len()).sum();
        let units_min = (units.len() * ELEMENTS_PER_THREAD).div_ceil(elements.max(1));
        let deviations =
            units
                .par_iter()
                .with_min_len(units_min)
                .zip(&copies)
                .map(|(unit, copies)| {
                    let slices = unit.slices(tensor).zip(copies);
                    let deviations = slices.flat_map(|(slice, bytes)| {
                        let pairs = dtype.decode(bytes).into_iter().zip(&slice.values);
                        pairs.map(|(actual, expected)| ((actual - expected).abs(), *expected))
                    });
                    deviations.collect()
                });
        Ok(Self {
            tensor,
            units,
            deviations: deviations.collect(),
            copies,
        })
    }

    /// An element, in words.
    fn element(&self, spec: &TensorSpec, unit: usize, place: usize) -> Element {
        let (number, mut place) = (self.units[unit].number, place);
        for (slice, bytes) in self.units[unit].slices(self.tensor).zip(&self.copies[unit]) {
            let Some(expected) = slice.values.get(place) else {
                place -= slice.values.len();
                continue;
            };
            let actual = spec.dtype.decode(bytes)[place];
            let element = Element {
                unit: Some(number),
                ..Element::new(spec, slice.start + place, actual)
            };
            return element.says(Judge::Oracle, *expected);
        }
        unreachable!("deviations have a place in their unit")
    }

    /// The first error in the sample, in words, and where it begins. A small sample is judged unit
    /// by unit only: the budget of the whole is that of a large one.
    fn fault(&self, spec: &TensorSpec, errors: &Errors, small: bool) -> Option<(String, usize)> {
        let (tensor, budget) = (&errors.tensor, errors.budget);
        for (unit, deviations) in self.deviations.iter().enumerate() {
            let number = self.units[unit].number;
            let allowed = budget.max_abs_in(deviations);
            if !within(deviations.largest, allowed) {
                let mut each = deviations.each.iter();
                let at = each.position(|error| !within(*error, allowed))?;
                let (element, error) = (self.element(spec, unit, at), deviations.each[at]);
                let what = format!("{element}: error {error:.3e}, allowed {allowed:.3e}");
                return Some((what, element.index));
            }
            let rel_l2 = deviations.rel_l2(budget.magnitude);
            let allowed = budget.rel_l2_in(deviations);
            if !within(rel_l2, allowed) {
                let worst = self.element(spec, unit, largest(&deviations.each));
                let what = format!(
                    "'{tensor}' has a relative L2 error of {rel_l2:.3e} in unit {number}, allowed {allowed:.3e}; \
                     worst: {worst}"
                );
                return Some((what, worst.index));
            }
        }
        if small || within(errors.rel_l2, budget.rel_l2) {
            return None;
        }
        let of_units: Vec<f64> = self.deviations.iter().map(|unit| unit.largest).collect();
        let unit = largest(&of_units);
        let worst = self.element(spec, unit, largest(&self.deviations[unit].each));
        let what = format!(
            "'{tensor}' has a relative L2 error of {:.3e}, allowed {:.3e}; worst: {worst}",
            errors.rel_l2, budget.rel_l2
        );
        Some((what, worst.index))
    }
}

/// The place of the largest; of the first if there are none.
fn largest(deviations: &[f64]) -> usize {
    let places = deviations.iter().enumerate();
    let largest = places.max_by(|(_, left), (_, right)| left.total_cmp(right));
    largest.map_or(0, |(place, _)| place)
}

/// False for a NaN on either side.
fn within(error: f64, allowed: f64) -> bool {
    error <= allowed
}

/// The tolerance that the oracle's answers in a tile of a tensor give, if there are any.
pub(crate) type Near<'n> = dyn Fn(usize, &Range<usize>) -> Result<Option<Budget>, Failure> + 'n;

/// Compares every element that the reference has, and every tile as a whole. A tile that differs by more than the
/// sample allows is looked at again with what is honest there: the sample may have missed where errors are largest.
pub(crate) fn check_full(
    set: &BufferSet,
    parts: &[Part],
    budgets: &[Budget],
    near: &Near,
) -> Result<(), Failure> {
    for part in parts {
        let budget = &budgets[part.tensor];
        let step = tile_elements(part.range.len());
        let compared = compare(set, part, part.range.clone(), step, budget)?;
        for (tile, found) in tiles(part.range.clone()).zip(compared) {
            let Err(failure) = judge(set, part, &tile, &found, budget) else {
                continue;
            };
            let Some(near) = near(part.tensor, &tile)? else {
                return Err(failure);
            };
            let budget = budget.or(near);
            let again = compare(set, part, tile.clone(), tile.len(), &budget)?;
            judge(set, part, &tile, &again[0], &budget)?;
        }
    }
    Ok(())
}

/// How far an element may be from the reference.
fn limit(dtype: DType, budget: &Budget) -> Tolerance {
    // Both sides may use up their tolerance in opposite directions, and the largest error of all
    // elements exceeds that of a sample; tiles are held to their L2 error. The sample may miss the
    // largest values, too, so two roundings of each side are added in proportion, unless the
    // tolerance is zero.
    let roundings = if *budget == Budget::default() {
        0.0
    } else {
        4.0
    };
    Tolerance {
        absolute: 3.0 * budget.max_abs,
        relative: roundings * dtype.unit_roundoff(),
    }
}

/// A range of a part, in tiles of `step` elements.
fn compare(
    set: &BufferSet,
    part: &Part,
    range: Range<usize>,
    step: usize,
    budget: &Budget,
) -> Result<Vec<Comparison>, Failure> {
    let dtype = set.specs()[part.tensor].dtype;
    let place = |address: usize, index: usize| address + index * dtype.size_bytes();
    let elements = range.len();
    Ok(set.device().compare(
        place(set.buffers()[part.tensor].address, range.start),
        place(part.address, range.start - part.range.start),
        dtype,
        Tiles { elements, step },
        limit(dtype, budget),
    )?)
}

fn judge(
    set: &BufferSet,
    part: &Part,
    tile: &Range<usize>,
    found: &Comparison,
    budget: &Budget,
) -> Result<(), Failure> {
    let limit = limit(set.specs()[part.tensor].dtype, budget);
    if let Some(index) = found.first_over {
        let index = tile.start + index;
        fail_if_poisoned(set, part.tensor, index, None)?;
        return Err(Failure::WrongAgainstReference {
            first: Box::new(against_reference(set, part, index)?),
            count: found.over_limit,
            error: found.max_abs,
            allowed: limit.absolute,
        });
    }
    // The absolute tolerance fits the largest values; errors among small ones show relative to
    // the tile that they are in.
    let allowed_l2 = 2.0 * budget.unit_l2 + limit.relative;
    let terms = budget.magnitude.powi(2) * tile.len() as f64;
    let norm = found.sum_squared_reference.max(terms);
    if found.sum_squared_error > allowed_l2.powi(2) * norm && tile.len() >= UNIT_ELEMENTS_MIN {
        return Err(Failure::TileAgainstReference {
            index: tile.start,
            worst: Box::new(worst_of(set, part, tile.clone())?),
            error: (found.sum_squared_error / norm).sqrt(),
            allowed: allowed_l2,
        });
    }
    Ok(())
}

/// An element, and what the reference has there.
fn against_reference(set: &BufferSet, part: &Part, index: usize) -> Result<Element, Failure> {
    let element = Element::read(set, part.tensor, index, None)?;
    let offset = index - part.range.start;
    let expected = value_at(set, part.tensor, part.address, offset)?;
    Ok(element.says(Judge::Reference, expected))
}

/// The element of a tile that is farthest from the reference.
fn worst_of(set: &BufferSet, part: &Part, tile: Range<usize>) -> Result<Element, Failure> {
    let dtype = set.specs()[part.tensor].dtype;
    let size = dtype.size_bytes();
    let read = |address: usize| -> Result<Vec<f64>, Failure> {
        let mut bytes = vec![0; tile.len() * size];
        set.device().read(address, &mut bytes)?;
        Ok(dtype.decode(&bytes))
    };
    let actual = read(set.buffers()[part.tensor].address + tile.start * size)?;
    let expected = read(part.address + (tile.start - part.range.start) * size)?;
    let pairs = actual.iter().zip(&expected);
    let deviations: Vec<f64> = pairs.map(|(left, right)| (left - right).abs()).collect();
    against_reference(set, part, tile.start + largest(&deviations))
}

/// Fails if the reference's values for a slice, which the part holds, are not the oracle's.
pub(crate) fn check_slice(
    set: &BufferSet,
    part: &Part,
    slice: &Slice,
    budget: &Budget,
) -> Result<(), Failure> {
    let spec = &set.specs()[part.tensor];
    let size = spec.dtype.size_bytes();
    let mut bytes = vec![0; slice.values.len() * size];
    let offset = (slice.start - part.range.start) * size;
    set.device().read(part.address + offset, &mut bytes)?;
    let actual = spec.dtype.decode(&bytes);
    let pairs = actual.iter().zip(&slice.values);
    let deviations: Deviations = pairs.map(|(a, e)| ((a - e).abs(), *e)).collect();
    let allowed = budget.max_abs_in(&deviations);
    for (at, error) in deviations.each.iter().enumerate() {
        if !within(*error, allowed) {
            let element = Element::new(spec, slice.start + at, actual[at]);
            let element = element.says(Judge::Oracle, slice.values[at]);
            let what = format!("{element}: error {error:.3e}, allowed {allowed:.3e}");
            let errors = Vec::new();
            return Err(Failure::Inaccurate { what, errors });
        }
    }
    Ok(())
}
