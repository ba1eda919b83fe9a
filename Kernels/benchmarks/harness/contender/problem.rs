//! What to compute, how much work it is, and what the correct answer is.

use std::any::Any;
use std::collections::BTreeMap;

use numeric::DType;
use serde::{Deserialize, Serialize};
use tensor::{Fill, Inputs, Role, TensorSpec};

use crate::entry::Shape;

/// A named list of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suite {
    pub name: &'static str,
    /// A one-line description of its shapes.
    pub about: &'static str,
}

/// Draws the suites of unseen shapes unless the user gives another seed. Each published run has a seed
/// of its own, so no constant can be fitted to its shapes.
pub const SHAPES_SEED: u64 = 20_261_128;

/// One shape of a suite, as data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Unique within its suite, e.g. `4096x7168`.
    pub name: String,
    pub suite: String,
    /// Where the shape comes from: a model, a paper, a benchmark script.
    pub provenance: String,
    /// Every number that defines the shape.
    pub axes: BTreeMap<String, serde_json::Value>,
    /// How much it counts in means; as much as any other without.
    #[serde(default)]
    pub weight: Option<f64>,
    /// The only operation that it is meant for.
    #[serde(default)]
    pub only_op: Option<String>,
    /// The shape as a workload file has it.
    #[serde(default)]
    pub shape: Shape,
}

/// The work that every implementation must do, not what one happens to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub flops: f64,
    pub read_bytes: f64,
    pub written_bytes: f64,
    /// Which measured peak is the compute roof.
    pub math: Math,
}

impl Cost {
    /// The cost of reading every input once and writing every output once.
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

/// A run of correct output values: elements `start..start + values.len()` of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    pub tensor: usize,
    pub start: usize,
    pub values: Vec<f64>,
}

/// A part of a problem that can be solved on its own.
pub struct Piece {
    pub problem: Box<dyn Problem>,
    pub places: Places,
}

/// For each tensor of a piece, the tensor of the whole that it is in, and its first element there;
/// none for those of its own, such as offsets.
pub type Places = Vec<Option<(usize, usize)>>;

/// Inputs of one kind: a problem's tensors with other contents.
#[derive(Clone, Debug)]
pub struct Family {
    pub name: &'static str,
    /// The same as the problem's own, but for what inputs are filled with.
    pub tensors: Vec<TensorSpec>,
}

/// What every problem says of itself.
#[derive(Clone, Debug)]
pub struct Statement {
    pub op: &'static str,
    /// The type that names the problem, usually that of its activations.
    pub dtype: DType,
    pub workload: Workload,
    /// In the order of the buffers.
    pub tensors: Vec<TensorSpec>,
}

impl Statement {
    /// # Panics
    /// If no tensor has the name.
    pub fn tensor(&self, name: &str) -> &TensorSpec {
        &self.tensors[tensor::place(&self.tensors, name)]
    }

    /// The tensors with some inputs filled differently.
    ///
    /// # Panics
    /// If no tensor has a name.
    pub fn family(&self, name: &'static str, fills: Vec<(&str, Fill)>) -> Family {
        let mut tensors = self.tensors.clone();
        for (tensor, fill) in fills {
            let place = tensor::place(&tensors, tensor);
            tensors[place] = tensors[place].clone().filled(fill);
        }
        Family { name, tensors }
    }

    /// Adds a number to those that define the workload.
    pub fn axis(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.workload.axes.insert(name.to_owned(), value.into());
    }
}

/// How far from the oracle an element of an output may be: `absolute`, or `relative` to the largest value of its unit,
/// whichever is more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

/// One operation on one workload.
pub trait Problem: Any + Send + Sync {
    fn statement(&self) -> &Statement;

    fn op(&self) -> &str {
        self.statement().op
    }

    fn workload(&self) -> &Workload {
        &self.statement().workload
    }

    fn dtype(&self) -> DType {
        self.statement().dtype
    }

    fn tensors(&self) -> &[TensorSpec] {
        &self.statement().tensors
    }

    fn cost(&self) -> Cost;

    /// How many units of the output can be checked separately: rows, column groups. The gate samples
    /// them; together they cover every output element.
    fn units(&self) -> usize;

    /// The correct values of one unit in f64, unrounded, from the inputs as rounded to their types.
    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice>;

    /// The same slices from an honest implementation in the problem's precision: f32 arithmetic,
    /// results rounded to their types. Its error sets the tolerance.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice>;

    /// The oracle's slices of some units, where it is somebody else's program, which may fail: the error is a
    /// sentence. None where `oracle` and `honest` compute them.
    fn ask(&self, _inputs: &Inputs, _units: &[usize]) -> Option<Result<Vec<Vec<Slice>>, String>> {
        None
    }

    /// The tolerance of an output whose problem says it; none where that of `honest` is measured.
    fn tolerance(&self, _tensor: usize) -> Option<Tolerance> {
        None
    }

    /// The kind of inputs that the tensors describe, and that are timed.
    fn inputs(&self) -> &'static str {
        "uniform"
    }

    /// Other kinds of inputs, on which a contender must be right too, though nobody is timed on them:
    /// what uniform numbers never show, such as a maximum that moves late.
    fn families(&self) -> Vec<Family> {
        Vec::new()
    }

    /// The problem in pieces that can be solved one by one, for a reference that takes too long for the
    /// whole. None if it cannot be cut.
    fn pieces(&self) -> Vec<Piece> {
        Vec::new()
    }

    /// The maximum number of units that the gate samples; lower if a unit is expensive.
    fn sampled_units(&self) -> usize {
        64
    }

    /// How large an output's elements would be if their terms did not cancel; 0 if they do not.
    /// Rounding errors are proportional to the terms, so an element is not held to the precision of
    /// whatever is left after cancellation.
    fn magnitude(&self, _tensor: usize) -> f64 {
        0.0
    }

    /// Whether an output has one correct answer, bit for bit, as quantisation does: the tolerance is
    /// then zero, and the oracle's values are rounded.
    fn is_exact(&self, _tensor: usize) -> bool {
        false
    }
}
