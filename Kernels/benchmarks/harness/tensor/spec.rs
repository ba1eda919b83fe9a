//! What a tensor is.

use std::ops::Range;
use std::sync::Arc;

use numeric::DType;

use crate::Shaped;

/// How a contender may access a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read only; the gate fails a contender that changes it.
    Input,
    /// Written completely; poisoned beforehand.
    Output,
    /// Read, then overwritten completely in place.
    InOut,
}

impl Role {
    pub fn is_read(self) -> bool {
        self != Role::Output
    }

    pub fn is_written(self) -> bool {
        self != Role::Input
    }
}

/// Where the contents of an input come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Uniform in [low, high], rounded to the tensor's type.
    Uniform { low: f32, high: f32 },
    /// Whole numbers in [0, below), for labels and indices.
    Index { below: u32 },
    /// Uniform, in ranges that depend on the place.
    Shaped(Arc<Shaped>),
    /// Exact contents that are the same for every seed: page tables, offsets.
    Bytes(Arc<[u8]>),
}

/// One tensor of a problem: dense, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    pub name: &'static str,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub role: Role,
    /// Unused if the role is [`Role::Output`].
    pub fill: Fill,
    /// Elements that a contender must write, if not all: see [`TensorSpec::written_only`].
    pub written: Option<Arc<[Range<usize>]>>,
}

/// The default distribution: values matter, because they affect power and thus clocks.
const UNIT: Fill = Fill::Uniform {
    low: -1.0,
    high: 1.0,
};

impl TensorSpec {
    /// An input of uniform values in [-1, 1]; see [`TensorSpec::filled`].
    pub fn input(name: &'static str, dtype: DType, shape: &[usize]) -> Self {
        Self {
            name,
            dtype,
            shape: shape.to_vec(),
            role: Role::Input,
            fill: UNIT,
            written: None,
        }
    }

    pub fn output(name: &'static str, dtype: DType, shape: &[usize]) -> Self {
        Self {
            role: Role::Output,
            ..Self::input(name, dtype, shape)
        }
    }

    pub fn in_out(name: &'static str, dtype: DType, shape: &[usize]) -> Self {
        Self {
            role: Role::InOut,
            ..Self::input(name, dtype, shape)
        }
    }

    /// An input of these numbers, whatever the seed is: offsets, page tables.
    pub fn indices(name: &'static str, shape: &[usize], values: &[i32]) -> Self {
        let bytes: Arc<[u8]> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        Self::input(name, DType::I32, shape).filled(Fill::Bytes(bytes))
    }

    pub fn filled(mut self, fill: impl Into<Fill>) -> Self {
        let fill = fill.into();
        match &fill {
            Fill::Bytes(bytes) => assert_eq!(
                bytes.len(),
                self.bytes(),
                "contents of '{}' have the wrong size",
                self.name
            ),
            Fill::Shaped(shaped) => shaped.check(self.name, self.elements()),
            Fill::Uniform { .. } | Fill::Index { .. } => {}
        }
        self.fill = fill;
        self
    }

    /// An output with padding: only these elements, in ascending ranges that do not touch, must be
    /// written and correct; the others may hold anything. They still belong to the tensor, so writing
    /// them is not out of bounds.
    pub fn written_only(mut self, ranges: Vec<Range<usize>>) -> Self {
        assert_eq!(self.role, Role::Output, "'{}' is not an output", self.name);
        let ordered = ranges.windows(2).all(|pair| pair[0].end < pair[1].start);
        let whole = ranges.iter().all(|range| range.start < range.end);
        let inside = ranges
            .last()
            .is_some_and(|last| last.end <= self.elements());
        assert!(
            ordered && whole && inside,
            "written ranges of '{}' are not ascending parts of it",
            self.name
        );
        self.written = Some(ranges.into());
        self
    }

    /// The elements that a contender must write.
    pub fn written_ranges(&self) -> Vec<Range<usize>> {
        match &self.written {
            Some(ranges) => ranges.to_vec(),
            None => std::iter::once(0..self.elements()).collect(),
        }
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size_bytes()
    }
}

/// Place of a tensor in a problem's list.
///
/// # Panics
/// If none has the name.
pub fn place(specs: &[TensorSpec], name: &str) -> usize {
    let place = specs.iter().position(|spec| spec.name == name);
    place.unwrap_or_else(|| {
        let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
        panic!("no tensor '{name}' among {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_without_padding_is_written_in_full() {
        let spec = TensorSpec::output("y", DType::F32, &[4, 8]);
        assert_eq!(spec.written_ranges().first(), Some(&(0..32)));
        let padded = spec.written_only(vec![0..8, 16..24]);
        assert_eq!(padded.written_ranges(), [0..8, 16..24]);
    }

    #[test]
    #[should_panic(expected = "not ascending parts")]
    fn written_ranges_stay_inside() {
        let _ = TensorSpec::output("y", DType::F32, &[4]).written_only(vec![0..2, 3..5]);
    }

    #[test]
    #[should_panic(expected = "is not an output")]
    fn only_outputs_have_padding() {
        let _ = TensorSpec::in_out("y", DType::F32, &[4]).written_only(vec![0..2, 3..4]);
    }
}
