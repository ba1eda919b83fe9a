//! What a tensor is.

use std::sync::Arc;

use numeric::DType;

/// How a contender may touch a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read only; the gate fails a contender that changes it.
    Input,
    /// Written in full; starts as poison.
    Output,
    /// Read, then written in full, in place.
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
    /// Exact contents that are the same for every seed: page tables, offsets.
    Bytes(Arc<[u8]>),
}

/// One tensor of a problem: dense, row major.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    pub name: &'static str,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub role: Role,
    /// Unused when the role is [`Role::Output`].
    pub fill: Fill,
}

/// The default distribution: values matter, because they change power and so clocks.
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

    pub fn filled(mut self, fill: Fill) -> Self {
        if let Fill::Bytes(bytes) = &fill {
            assert_eq!(
                bytes.len(),
                self.bytes(),
                "contents of '{}' do not fit it",
                self.name
            );
        }
        self.fill = fill;
        self
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size_bytes()
    }
}
