//! What oneDNN is asked to do, in its own terms.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    F16,
    Bf16,
    F32,
}

impl Type {
    pub(crate) fn code(self) -> i32 {
        match self {
            Type::F16 => 1,
            Type::Bf16 => 2,
            Type::F32 => 3,
        }
    }
}

/// A function of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    GeluErf,
    GeluTanh,
}

impl Curve {
    pub(crate) fn code(self) -> i32 {
        match self {
            Curve::GeluErf => 0x31,
            Curve::GeluTanh => 0x2b,
        }
    }
}

/// One primitive. Matrices are dense and row major; statistics, weights and their gradients are f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// Takes x, weight, bias, out.
    LayerNorm(Rows, f32),
    /// Takes x, weight, bias (which it asks for and does not use), out gradient, mean, variance, and the
    /// gradients of x, weight and bias.
    LayerNormBackward(Rows, f32),
    /// Takes x, out.
    Softmax(Rows),
    /// Takes out, out gradient, x gradient.
    SoftmaxBackward(Rows),
    /// Takes x, out.
    Elementwise(Curve, Rows),
    /// Takes x, out gradient, x gradient.
    ElementwiseBackward(Curve, Rows),
    /// Takes a [m, k], b [n, k] with k contiguous, out [m, n].
    Matmul(Product),
}

/// A matrix of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub rows: usize,
    pub columns: usize,
    pub dtype: Type,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub dtype: Type,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::LayerNorm(..) => "LayerNorm",
            Operation::LayerNormBackward(..) => "LayerNorm's backward pass",
            Operation::Softmax(..) => "softmax",
            Operation::SoftmaxBackward(..) => "softmax's backward pass",
            Operation::Elementwise(..) => "GELU",
            Operation::ElementwiseBackward(..) => "GELU's backward pass",
            Operation::Matmul(..) => "this matrix product",
        })
    }
}
