//! A wrong element of an output, in words: where it is, what it is, and what it should be.

use std::fmt;

use tensor::TensorSpec;

use crate::BufferSet;
use crate::{Answers, Failure};

/// Who knows the right value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    Oracle,
    Reference,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    pub tensor: &'static str,
    /// In memory.
    pub index: usize,
    /// Along the dimensions.
    pub place: Vec<usize>,
    /// The part of the output that the oracle computes at a time, if it is known.
    pub unit: Option<usize>,
    pub got: f64,
    pub expected: Option<(Judge, f64)>,
}

impl Element {
    pub(crate) fn new(spec: &TensorSpec, index: usize, got: f64) -> Self {
        Self {
            tensor: spec.name,
            index,
            place: place(&spec.shape, index),
            unit: None,
            got,
            expected: None,
        }
    }

    /// The element as it is in a set; with what the oracle says if it was asked about it.
    pub(crate) fn read(
        set: &BufferSet,
        tensor: usize,
        index: usize,
        answers: Option<&Answers>,
    ) -> Result<Self, Failure> {
        let got = value_at(set, tensor, set.buffers()[tensor].address, index)?;
        let mut element = Self::new(&set.specs()[tensor], index, got);
        if let Some((unit, value)) = answers.and_then(|answers| answers.at(tensor, index)) {
            element.unit = Some(unit);
            element.expected = Some((Judge::Oracle, value));
        }
        Ok(element)
    }

    pub(crate) fn says(self, judge: Judge, expected: f64) -> Self {
        Self {
            expected: Some((judge, expected)),
            ..self
        }
    }

    /// Where it is: `'out'[3, 17] (element 785, unit 3)`.
    pub fn location(&self) -> String {
        let place: Vec<String> = self.place.iter().map(usize::to_string).collect();
        let mut notes = Vec::new();
        if self.place.len() != 1 {
            notes.push(format!("element {}", self.index));
        }
        notes.extend(self.unit.map(|unit| format!("unit {unit}")));
        let notes = match notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", notes.join(", ")),
        };
        format!("'{}'[{}]{notes}", self.tensor, place.join(", "))
    }

    /// What it should be, to follow what it is.
    pub fn expectation(&self) -> String {
        match self.expected {
            Some((Judge::Oracle, value)) => format!(", the oracle says {value:e}"),
            Some((Judge::Reference, value)) => format!(", the reference says {value:e}"),
            None => String::new(),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (location, expectation) = (self.location(), self.expectation());
        write!(f, "{location} is {:e}{expectation}", self.got)
    }
}

/// One value of a tensor's type, from a tensor that begins at `address`.
pub(crate) fn value_at(
    set: &BufferSet,
    tensor: usize,
    address: usize,
    index: usize,
) -> Result<f64, Failure> {
    let dtype = set.specs()[tensor].dtype;
    let mut bytes = vec![0; dtype.size_bytes()];
    set.device()
        .read(address + index * bytes.len(), &mut bytes)?;
    Ok(dtype.decode(&bytes).first().copied().unwrap_or(f64::NAN))
}

/// Row-major.
fn place(shape: &[usize], index: usize) -> Vec<usize> {
    let mut left = index;
    let mut place: Vec<usize> = shape
        .iter()
        .rev()
        .map(|size| {
            let size = (*size).max(1);
            let at = left % size;
            left /= size;
            at
        })
        .collect();
    place.reverse();
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use numeric::DType;
    use proptest::prelude::*;

    #[test]
    fn a_place_is_said_once_if_it_is_a_number() {
        let matrix = TensorSpec::output("y", DType::F32, &[300, 33]);
        let element = Element::new(&matrix, 116, 1.5).says(Judge::Oracle, 2.0);
        assert_eq!(
            element.to_string(),
            "'y'[3, 17] (element 116) is 1.5e0, the oracle says 2e0"
        );
        let known = Element {
            unit: Some(3),
            ..Element::new(&matrix, 116, f64::NAN)
        };
        assert_eq!(known.to_string(), "'y'[3, 17] (element 116, unit 3) is NaN");
        let vector = TensorSpec::output("y", DType::F32, &[300]);
        let element = Element::new(&vector, 7, 0.0).says(Judge::Reference, 1.0);
        assert_eq!(element.to_string(), "'y'[7] is 0e0, the reference says 1e0");
    }

    proptest! {
        #[test]
        fn a_place_is_that_of_the_index(shape in prop::collection::vec(1usize..9, 0..5), draw in any::<usize>()) {
            let index = draw % shape.iter().product::<usize>();
            let place = place(&shape, index);
            let back = place.iter().zip(&shape).fold(0, |sum, (at, size)| {
                assert!(at < size);
                sum * size + at
            });
            prop_assert_eq!(back, index);
        }
    }
}
