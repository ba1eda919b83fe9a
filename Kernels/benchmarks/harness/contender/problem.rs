//! What is to be computed, how much work it is, and what the right answer is.

use std::any::Any;
use std::collections::BTreeMap;

use numeric::DType;
use serde::{Deserialize, Serialize};
use tensor::{Inputs, Role, TensorSpec};

/// A named list of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suite {
    pub name: &'static str,
    /// Its shapes, in a line.
    pub about: &'static str,
}

/// One shape of a suite, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Unique within its suite, e.g. `4096x7168`.
    pub name: String,
    pub suite: String,
    /// Where the shape comes from: a model, a paper, a benchmark script.
    pub provenance: String,
    /// Every number that defines the shape.
    pub axes: BTreeMap<String, serde_json::Value>,
}

/// The work that any implementation must do, not what one of them happens to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub flops: f64,
    pub read_bytes: f64,
    pub written_bytes: f64,
    /// Which measured peak is the compute roof.
    pub math: Math,
}

impl Cost {
    /// Of work that reads every input once and writes every output once.
    pub fn of_whole_tensors(tensors: &[TensorSpec], flops: f64, math: Math) -> Self {
        let bytes = |touches: fn(Role) -> bool| {
            let touched = tensors.iter().filter(|spec| touches(spec.role));
            touched.map(|spec| spec.bytes() as f64).sum()
        };
        Self {
            flops,
            read_bytes: bytes(Role::is_read),
            written_bytes: bytes(Role::is_written),
            math,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Math {
    Fp32,
    TensorCore(DType),
}

/// A run of right output values: elements `start..start + values.len()` of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    pub tensor: usize,
    pub start: usize,
    pub values: Vec<f64>,
}

/// One operation on one workload.
pub trait Problem: Any + Send + Sync {
    fn op(&self) -> &str;
    fn workload(&self) -> &Workload;
    /// The type that names the problem, usually that of its activations.
    fn dtype(&self) -> DType;
    fn tensors(&self) -> &[TensorSpec];
    fn cost(&self) -> Cost;

    /// How many pieces of the outputs can be checked on their own: rows, column groups. The gate
    /// samples them; together they cover every output element.
    fn units(&self) -> usize;

    /// The right values of one unit in f64, from the inputs as rounded to their types; not rounded.
    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice>;

    /// The same slices by an honest implementation of the problem's precision: f32 arithmetic,
    /// results rounded to their types. Its error sets the tolerance.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice>;

    /// The most units that the gate samples; fewer where one takes long.
    fn sampled_units(&self) -> usize {
        64
    }

    /// How large an output's elements would be if the terms that make them up did not cancel; 0 where
    /// they do not. Rounding errors are in proportion to the terms, so an element is not held to the
    /// precision of what happens to be left of them.
    fn magnitude(&self, _tensor: usize) -> f64 {
        0.0
    }

    /// Whether an output has one right answer, bit by bit, as quantisation does: the gate then
    /// allows no error, and the oracle's values are rounded.
    fn is_exact(&self, _tensor: usize) -> bool {
        false
    }
}
