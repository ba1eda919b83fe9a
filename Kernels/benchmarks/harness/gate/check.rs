//! Compares a set's outputs with the correct answers.

use std::ops::Range;

use contender::Slice;
use device::{Device, Tolerance};
use tensor::TensorSpec;

use crate::buffers::poison_byte;
use crate::{Answers, Budget, BufferSet, Errors, Failure, Poison};

/// Fails if an output element is not finite, or still holds poison that no answer contains.
pub(crate) fn check_written(set: &BufferSet) -> Result<(), Failure> {
    for (tensor, spec) in set.specs().iter().enumerate() {
        if spec.role.is_written() {
            for range in spec.written_ranges() {
                check_range_written(set, tensor, range)?;
            }
        }
    }
    Ok(())
}

fn check_range_written(set: &BufferSet, tensor: usize, range: Range<usize>) -> Result<(), Failure> {
    let (device, spec) = (set.device(), &set.specs()[tensor]);
    let start = set.buffers()[tensor].address + range.start * spec.dtype.size_bytes();
    let (index, count) = if spec.dtype.is_float() {
        // Compared with itself every finite value passes, so only the others are counted.
        let limit = Tolerance {
            absolute: 0.0,
            relative: 0.0,
        };
        let found = device.compare(start, start, spec.dtype, range.len(), limit)?;
        (found.first_over, found.non_finite)
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
    let tensor = spec.name;
    Err(if poisoned {
        Failure::Unwritten {
            tensor,
            index,
            count,
        }
    } else {
        Failure::NonFinite {
            tensor,
            index,
            count,
        }
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
    let poison = vec![poison_byte(spec); spec.dtype.size_bytes()];
    let mut poisoned = bytes
        .chunks_exact(poison.len())
        .enumerate()
        .filter(|(_, element)| *element == poison)
        .map(|(index, _)| index);
    let first = poisoned.next();
    let count = poisoned.count() as u64 + u64::from(first.is_some());
    Ok((first, count))
}

/// Compares the sampled slices with the oracle: the errors of each output tensor, in order.
pub(crate) fn check_sample(
    set: &BufferSet,
    answers: &Answers,
    budgets: &[Budget],
) -> Result<Vec<Errors>, Failure> {
    let (mut all, mut fault) = (Vec::new(), None);
    for (tensor, spec) in set.specs().iter().enumerate() {
        if spec.role.is_written() {
            let sample = Sample::read(set, answers, tensor)?;
            let deviations = sample.deviations();
            let errors = Errors {
                tensor: spec.name.to_owned(),
                budget: budgets[tensor],
                ..Errors::of(&deviations, &sample.expected, budgets[tensor].magnitude)
            };
            if fault.is_none() {
                fault = sample.fault(&deviations, &errors);
                if let Some((_, Some(index))) = fault {
                    fail_if_poisoned(set, tensor, index, answers.oracle(tensor))?;
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

/// Fails with the right name if a wrong element is one that was never written; `slices` are looked
/// through for more.
fn fail_if_poisoned<'a>(
    set: &BufferSet,
    tensor: usize,
    index: usize,
    slices: impl Iterator<Item = &'a Slice>,
) -> Result<(), Failure> {
    if set.poisoned(tensor, index, 1)? == 0 {
        return Ok(());
    }
    let mut count = 0;
    for slice in slices {
        count += set.poisoned(tensor, slice.start, slice.values.len())?;
    }
    Err(Failure::Unwritten {
        tensor: set.specs()[tensor].name,
        index,
        count: count.max(1),
    })
}

/// The sampled elements of one tensor.
struct Sample {
    indices: Vec<usize>,
    actual: Vec<f64>,
    expected: Vec<f64>,
}

impl Sample {
    fn read(set: &BufferSet, answers: &Answers, tensor: usize) -> Result<Self, Failure> {
        let dtype = set.specs()[tensor].dtype;
        let address = set.buffers()[tensor].address;
        let mut sample = Self {
            indices: Vec::new(),
            actual: Vec::new(),
            expected: Vec::new(),
        };
        for slice in answers.oracle(tensor) {
            let count = slice.values.len();
            let mut bytes = vec![0; count * dtype.size_bytes()];
            set.device()
                .read(address + slice.start * dtype.size_bytes(), &mut bytes)?;
            sample.indices.extend(slice.start..slice.start + count);
            sample.actual.extend(dtype.decode(&bytes));
            sample.expected.extend(&slice.values);
        }
        Ok(sample)
    }

    fn deviations(&self) -> Vec<f64> {
        self.actual
            .iter()
            .zip(&self.expected)
            .map(|(a, e)| (a - e).abs())
            .collect()
    }

    /// The first error in the sample, in words, and where it is if it is in one place.
    fn fault(&self, deviations: &[f64], errors: &Errors) -> Option<(String, Option<usize>)> {
        let (tensor, budget) = (&errors.tensor, errors.budget);
        if let Some(at) = deviations
            .iter()
            .position(|error| !within(*error, budget.max_abs))
        {
            let (index, error) = (self.indices[at], deviations[at]);
            let (actual, expected) = (self.actual[at], self.expected[at]);
            let what = format!(
                "'{tensor}'[{index}] is {actual:e}, the oracle says {expected:e}: error \
                 {error:.3e}, allowed {:.3e}",
                budget.max_abs
            );
            return Some((what, Some(index)));
        }
        (!within(errors.rel_l2, budget.rel_l2)).then(|| {
            let what = format!(
                "'{tensor}' has a relative L2 error of {:.3e}, allowed {:.3e}",
                errors.rel_l2, budget.rel_l2
            );
            (what, None)
        })
    }
}

/// False for a NaN on either side.
fn within(error: f64, allowed: f64) -> bool {
    error <= allowed
}

/// Compares every element with the reference's output at `reference[tensor]`.
pub(crate) fn check_full(
    set: &BufferSet,
    reference: &[Option<usize>],
    budgets: &[Budget],
) -> Result<(), Failure> {
    for (tensor, spec) in set.specs().iter().enumerate() {
        let Some(address) = reference[tensor] else {
            continue;
        };
        // Both sides may use up their tolerance in opposite directions. The sample may miss the
        // largest values, so two roundings of each side are added in proportion, unless the
        // tolerance is zero.
        let roundings = if budgets[tensor] == Budget::default() {
            0.0
        } else {
            4.0
        };
        let limit = Tolerance {
            absolute: 2.0 * budgets[tensor].max_abs,
            relative: roundings * spec.dtype.unit_roundoff(),
        };
        let actual = set.buffers()[tensor].address;
        for range in spec.written_ranges() {
            let offset = range.start * spec.dtype.size_bytes();
            let found = set.device().compare(
                actual + offset,
                address + offset,
                spec.dtype,
                range.len(),
                limit,
            )?;
            if let Some(index) = found.first_over {
                fail_if_poisoned(set, tensor, range.start + index, [].into_iter())?;
                return Err(Failure::WrongAgainstReference {
                    tensor: spec.name,
                    index: range.start + index,
                    count: found.over_limit,
                    error: found.max_abs,
                    allowed: limit.absolute,
                });
            }
        }
    }
    Ok(())
}
