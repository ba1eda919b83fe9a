//! One launch of a kernel for one problem: sizes and arguments, checked.

use std::collections::BTreeMap;

use contender::{Buffer, DeviceInfo, Problem};
use serde_json::Value;
use tensor::TensorSpec;

use crate::description::{Argument, Description};
use crate::expression::Expression;
use crate::tensor_map::Map;

const GRID_MAX: [i64; 3] = [(1 << 31) - 1, 65_535, 65_535];
const BLOCK_MAX: [i64; 3] = [1024, 1024, 64];
const THREADS_MAX: i64 = 1024;
/// Above 8, a kernel has to ask the driver, which the harness does for it.
const CLUSTER_BLOCKS_MAX: i64 = 16;
/// What expressions may name besides axes.
const MULTIPROCESSORS: &str = "multiprocessors";

/// What a kernel is launched with.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub shared_bytes: u32,
    pub arguments: Vec<Passed>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    /// As they lie in memory.
    Bytes(Vec<u8>),
    Map(Map),
}

impl Passed {
    pub fn bytes(&self) -> usize {
        match self {
            Passed::Bytes(bytes) => bytes.len(),
            Passed::Map(_) => MAP_BYTES,
        }
    }
}

pub const MAP_BYTES: usize = 128;

/// What a description may refer to.
pub struct Names<'p> {
    op: &'p str,
    axes: &'p BTreeMap<String, Value>,
    tensors: &'p [TensorSpec],
    multiprocessors: u32,
}

impl<'p> Names<'p> {
    pub fn of(problem: &'p dyn Problem, device: &DeviceInfo) -> Self {
        Self {
            op: problem.op(),
            axes: &problem.workload().axes,
            tensors: problem.tensors(),
            multiprocessors: device.multiprocessors,
        }
    }

    fn integer(&self, name: &str) -> Option<i64> {
        match self.axes.get(name) {
            Some(axis) => axis.as_i64(),
            None => (name == MULTIPROCESSORS).then_some(i64::from(self.multiprocessors)),
        }
    }

    /// A number that need not be whole, such as epsilon, which is a text.
    fn number(&self, name: &str) -> Result<f64, String> {
        let axis = self.axes.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.axes.keys().map(String::as_str).collect();
            format!(
                "there is no axis '{name}'; {} has {}",
                self.op,
                known.join(", ")
            )
        })?;
        let number = match axis {
            Value::String(text) => text.parse().ok(),
            axis => axis.as_f64(),
        };
        number.ok_or_else(|| format!("the axis '{name}' is {axis}, not a number"))
    }

    fn value(&self, expression: &Expression) -> Result<i64, String> {
        let known = || {
            let whole = self
                .axes
                .iter()
                .filter(|(_, axis)| axis.is_i64() || axis.is_u64());
            let names: Vec<&str> = whole
                .map(|(name, _)| name.as_str())
                .chain([MULTIPROCESSORS])
                .collect();
            names.join(", ")
        };
        let value = expression.value(&|name| self.integer(name), &known);
        value.map_err(|error| error.to_string())
    }

    fn tensor(&self, name: &str) -> Result<usize, String> {
        let found = self.tensors.iter().position(|spec| spec.name == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.tensors.iter().map(|spec| spec.name).collect();
            format!(
                "there is no tensor '{name}'; {} has {}",
                self.op,
                known.join(", ")
            )
        })
    }
}

/// Why a kernel does not solve a problem, if it does not.
pub fn obstacle(description: &Description, problem: &dyn Problem) -> Option<String> {
    let (op, dtype) = (problem.op(), problem.dtype());
    if !description.ops.iter().any(|known| known == op) {
        return Some(format!("solves {}, not {op}", description.ops.join(", ")));
    }
    if !description.dtypes.contains(&dtype) {
        let known: Vec<String> = description.dtypes.iter().map(ToString::to_string).collect();
        return Some(format!("takes {}, not {dtype}", known.join(", ")));
    }
    let axes = &problem.workload().axes;
    description.multiples_of.iter().find_map(|(axis, of)| {
        let value = axes.get(axis).and_then(Value::as_u64);
        match value {
            Some(value) if value % u64::from(*of) == 0 => None,
            Some(value) => Some(format!(
                "needs {axis} to be a multiple of {of}; it is {value}"
            )),
            None => Some(format!(
                "needs {axis} to be a multiple of {of}; {op} has no such axis"
            )),
        }
    })
}

impl Plan {
    pub fn new(
        description: &Description,
        names: &Names,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Self, String> {
        let grid = sizes("grid", &description.grid, GRID_MAX, names)?;
        let block = sizes("block", &description.block, BLOCK_MAX, names)?;
        let threads: i64 = block.iter().map(|size| i64::from(*size)).product();
        if threads > THREADS_MAX {
            return Err(format!(
                "block has {threads} threads, and at most {THREADS_MAX} are launched"
            ));
        }
        let cluster = sizes(
            "cluster",
            &description.cluster,
            [CLUSTER_BLOCKS_MAX; 3],
            names,
        )?;
        let blocks: i64 = cluster.iter().map(|size| i64::from(*size)).product();
        if blocks > CLUSTER_BLOCKS_MAX {
            return Err(format!(
                "cluster has {blocks} blocks, and at most {CLUSTER_BLOCKS_MAX} are launched"
            ));
        }
        if let Some(at) = (0..3).find(|at| grid[*at] % cluster[*at] != 0) {
            let (grid, cluster) = (grid[at], cluster[at]);
            return Err(format!(
                "grid has {grid} blocks along a side that clusters of {cluster} do not divide"
            ));
        }
        let shared = description.shared_bytes.as_ref();
        let shared = shared.map_or(Ok(0), |expression| names.value(expression))?;
        let most = device.shared_bytes_per_block;
        let shared_bytes = u32::try_from(shared).ok().filter(|bytes| *bytes <= most);
        let shared_bytes = shared_bytes.ok_or_else(|| {
            format!("shared_bytes is {shared}: this device has 0 to {most} per block")
        })?;
        let arguments = description.arguments.iter();
        let arguments = arguments.map(|argument| pass(argument, names, buffers));
        Ok(Self {
            grid,
            block,
            cluster,
            shared_bytes,
            arguments: arguments.collect::<Result<_, _>>()?,
        })
    }

    /// Fails unless the kernel's own parameters are as large, one by one.
    pub fn check_parameters(&self, entry: &str, bytes: &[usize]) -> Result<(), String> {
        let passed = self.arguments.len();
        if passed != bytes.len() {
            let taken = bytes.len();
            return Err(format!(
                "'{entry}' takes {taken} parameters, and arguments has {passed}"
            ));
        }
        for (at, (argument, bytes)) in self.arguments.iter().zip(bytes).enumerate() {
            let passed = argument.bytes();
            if passed != *bytes {
                return Err(format!(
                    "parameter {at} of '{entry}' has {bytes} bytes, and its argument has {passed}"
                ));
            }
        }
        Ok(())
    }
}

fn sizes(
    what: &str,
    expressions: &[Expression],
    most: [i64; 3],
    names: &Names,
) -> Result<[u32; 3], String> {
    let mut sizes = [1; 3];
    for (at, expression) in expressions.iter().enumerate().take(3) {
        let value = names
            .value(expression)
            .map_err(|error| format!("{what}: {error}"))?;
        if !(1..=most[at]).contains(&value) {
            let most = most[at];
            return Err(format!(
                "{what}: '{expression}' is {value}, not within 1 to {most}"
            ));
        }
        sizes[at] = value as u32;
    }
    Ok(sizes)
}

fn pass(argument: &Argument, names: &Names, buffers: &[Buffer]) -> Result<Passed, String> {
    Ok(match argument {
        Argument::Tensor(name) => {
            let address = buffers[names.tensor(name)?].address as u64;
            Passed::Bytes(address.to_le_bytes().to_vec())
        }
        Argument::Axis(name, scalar) => {
            let bytes = scalar.encode(names.number(name)?);
            Passed::Bytes(bytes.map_err(|error| format!("axis '{name}': {error}"))?)
        }
        Argument::Expression(expression, scalar) => {
            let bytes = scalar.encode_integer(names.value(expression)?);
            Passed::Bytes(bytes.map_err(|error| format!("'{expression}': {error}"))?)
        }
        Argument::Value(value, scalar) => Passed::Bytes(scalar.encode(*value)?),
        Argument::TensorMap(map) => {
            let place = names.tensor(&map.tensor)?;
            let (spec, buffer) = (&names.tensors[place], buffers[place]);
            Passed::Map(Map::new(map, spec, buffer, &|expression| {
                names.value(expression)
            })?)
        }
    })
}

#[cfg(test)]
mod tests;
