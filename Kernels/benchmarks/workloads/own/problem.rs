//! One shape of a problem file in one type, as a problem like any other.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use contender::{Cost, Family, Math, Problem, Shape, Slice, Statement, Tolerance, Workload};
use kernel_file::Expression;
use numeric::DType;
use serde_json::Value;
use tensor::{Inputs, Role, TensorSpec};

use crate::file::{ProblemFile, TensorFile, ToleranceFile, TypeWord, ELEMENT_BYTES};
use crate::inputs::{Kind, KINDS};
use crate::oracle::Seat;

/// The suite of the shapes that a problem file has.
pub const SUITE: &str = "own";

/// As in workload files: more than any device holds.
const ELEMENTS_MAX: usize = 1 << 40;
const UNITS_MAX: i64 = 1 << 31;

#[derive(Clone)]
pub struct OwnProblem {
    statement: Statement,
    cost: Cost,
    units: usize,
    tolerances: Vec<Option<Tolerance>>,
    file: Arc<ProblemFile>,
    /// None where nobody asks, as in tests of files.
    seat: Option<Arc<Seat>>,
    /// Tells it from the others of a run.
    key: String,
}

/// Values of the names in expressions.
struct Scope<'f> {
    sizes: Vec<(&'f str, i64)>,
}

impl Scope<'_> {
    fn value(&self, expression: &Expression) -> Result<i64, String> {
        let get = |name: &str| {
            let mut sizes = self.sizes.iter();
            sizes
                .find(|(known, _)| *known == name)
                .map(|(_, size)| *size)
        };
        let known = || {
            let names: Vec<&str> = self.sizes.iter().map(|(name, _)| *name).collect();
            names.join(", ")
        };
        let value = expression.value(&get, &known);
        value.map_err(|error| error.to_string())
    }

    fn cost(&self, what: &str, expression: &Expression) -> Result<f64, String> {
        match self.value(expression)? {
            value if value >= 0 => Ok(value as f64),
            value => Err(format!("{what}: '{expression}' is {value}, below 0")),
        }
    }
}

/// A name that lives as long as the program, of which there are as many as problem files have.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

impl OwnProblem {
    /// A shape, which is one of the file's or follows its axes; the error is a sentence.
    pub fn new(
        file: &Arc<ProblemFile>,
        shape: &Shape,
        dtype: DType,
        seat: Option<Arc<Seat>>,
        provenance: &str,
    ) -> Result<Self, String> {
        if !file.dtypes.contains(&dtype) {
            let known: Vec<String> = file.dtypes.iter().map(DType::to_string).collect();
            return Err(format!(
                "{} has no type {dtype}; its problem file has {}",
                file.op,
                known.join(", ")
            ));
        }
        let mut sizes = axis_sizes(file, shape)?;
        let name: Vec<String> = sizes.iter().map(|(_, size)| size.to_string()).collect();
        let name = name.join("x");
        let mut workload = Workload {
            name: name.clone(),
            suite: SUITE.to_owned(),
            provenance: provenance.to_owned(),
            shape: shape.clone(),
            ..Workload::default()
        };
        for (axis, size) in &sizes {
            let (axis, size) = ((*axis).to_owned(), Value::from(*size));
            workload.axes.insert(axis, size);
        }
        for (number, value) in &file.numbers.0 {
            let text = Value::from(value.to_string());
            workload.axes.insert(number.clone(), text);
        }
        sizes.push((ELEMENT_BYTES, dtype.size_bytes() as i64));
        let scope = Scope { sizes };
        let tensors: Result<Vec<TensorSpec>, String> = file
            .tensors
            .iter()
            .map(|tensor| {
                let spec = spec(tensor, dtype, &scope);
                spec.map_err(|reason| format!("{name}: tensor '{}': {reason}", tensor.name))
            })
            .collect();
        let tensors = tensors?;
        let told = |reason: String| format!("{name}: {reason}");
        let units = units(file, &tensors, &scope).map_err(told)?;
        let cost = cost(file, &tensors, &scope).map_err(told)?;
        let tolerances: Result<Vec<_>, String> = file
            .tensors
            .iter()
            .zip(&tensors)
            .map(|(tensor, spec)| tolerance(file, tensor, spec))
            .collect();
        let statement = Statement {
            op: lasting(&file.op),
            dtype,
            workload,
            tensors,
        };
        Ok(Self {
            file: file.clone(),
            tolerances: tolerances?,
            key: format!("{} {dtype} {name}", file.op),
            statement,
            cost,
            units,
            seat,
        })
    }

    /// A shape as the file's `shapes` have it, from sizes in the order of the axes.
    pub fn shape(file: &ProblemFile, sizes: &[usize]) -> Result<Shape, String> {
        if sizes.len() != file.axes.len() {
            let (count, axes) = (sizes.len(), file.axes.join("x"));
            return Err(format!("has {count} sizes: expected {axes}"));
        }
        let sizes = sizes.iter().map(|size| Value::from(*size));
        Ok(file.axes.iter().cloned().zip(sizes).collect())
    }

    /// The workload, to be named by whoever gave the shape.
    pub fn workload_mut(&mut self) -> &mut Workload {
        &mut self.statement.workload
    }
}

/// The size of every axis, in order.
fn axis_sizes<'f>(file: &'f ProblemFile, shape: &Shape) -> Result<Vec<(&'f str, i64)>, String> {
    if let Some(name) = shape.keys().find(|name| !file.axes.contains(name)) {
        let axes = file.axes.join(", ");
        return Err(format!("a shape has '{name}', but the axes are {axes}"));
    }
    let size = |axis: &'f String| {
        let size = shape.get(axis);
        let size = size.ok_or_else(|| format!("a shape lacks '{axis}'"))?;
        let whole = size.as_u64().filter(|size| *size <= ELEMENTS_MAX as u64);
        match whole {
            Some(0) => Err(format!("{axis} is 0; it must be at least 1")),
            Some(size) => Ok((axis.as_str(), size as i64)),
            None => Err(format!("{axis} is {size}; expected 1 to 2^40")),
        }
    };
    file.axes.iter().map(size).collect()
}

fn spec(tensor: &TensorFile, dtype: DType, scope: &Scope) -> Result<TensorSpec, String> {
    let dtype = match tensor.dtype {
        TypeWord::Same => dtype,
        TypeWord::Is(dtype) => dtype,
    };
    let mut shape = Vec::new();
    let mut elements = 1usize;
    for expression in &tensor.shape {
        let size = scope.value(expression)?;
        let whole = usize::try_from(size).ok().filter(|size| *size > 0);
        let whole =
            whole.ok_or_else(|| format!("'{expression}' is {size}; it must be at least 1"))?;
        shape.push(whole);
        let product = elements.checked_mul(whole);
        elements = product
            .filter(|product| *product <= ELEMENTS_MAX)
            .ok_or("it has more than 2^40 elements")?;
    }
    let name = lasting(&tensor.name);
    let spec = match tensor.role.into() {
        Role::Input => TensorSpec::input(name, dtype, &shape),
        Role::Output => TensorSpec::output(name, dtype, &shape),
        Role::InOut => TensorSpec::in_out(name, dtype, &shape),
    };
    match &tensor.inputs {
        Some(numbers) => Ok(spec.filled(numbers.fill(&|it| scope.value(it))?)),
        None => Ok(spec),
    }
}

fn units(file: &ProblemFile, tensors: &[TensorSpec], scope: &Scope) -> Result<usize, String> {
    let Some(expression) = &file.units else {
        return Ok(1);
    };
    let units = scope.value(expression)?;
    if !(1..=UNITS_MAX).contains(&units) {
        return Err(format!(
            "units: '{expression}' is {units}; expected 1 to 2^31"
        ));
    }
    let units = units as usize;
    let written = tensors.iter().filter(|spec| spec.role.is_written());
    for spec in written {
        let (name, elements) = (spec.name, spec.elements());
        if !elements.is_multiple_of(units) {
            return Err(format!(
                "units: '{expression}' is {units}, which does not divide the {elements} elements of '{name}'"
            ));
        }
    }
    Ok(units)
}

fn cost(file: &ProblemFile, tensors: &[TensorSpec], scope: &Scope) -> Result<Cost, String> {
    let cost = &file.cost;
    let math = cost.tensor_cores.map_or(Math::Fp32, Math::TensorCore);
    let flops = scope.cost("operations", &cost.operations)?;
    let whole = Cost::of_whole_tensors(tensors, flops, math);
    let given = |what: &str, bytes: &Option<Expression>, otherwise: f64| match bytes {
        Some(expression) => scope.cost(what, expression),
        None => Ok(otherwise),
    };
    Ok(Cost {
        read_bytes: given("read_bytes", &cost.read_bytes, whole.read_bytes)?,
        written_bytes: given("written_bytes", &cost.written_bytes, whole.written_bytes)?,
        ..whole
    })
}

fn tolerance(
    file: &ProblemFile,
    tensor: &TensorFile,
    spec: &TensorSpec,
) -> Result<Option<Tolerance>, String> {
    if !spec.role.is_written() || !spec.dtype.is_float() {
        return match tensor.tolerance {
            Some(_) => Err(format!(
                "tensor '{}': an {} is right or wrong, and takes no tolerance",
                spec.name, spec.dtype
            )),
            None => Ok(None),
        };
    }
    let given = tensor.tolerance.or(file.tolerance);
    let given = given.ok_or_else(|| {
        format!(
            "tensor '{}' has no tolerance; give it one, or the file, such as {{\"roundings\": 2}}",
            spec.name
        )
    })?;
    let ToleranceFile {
        relative,
        roundings,
        absolute,
    } = given;
    Ok(Some(Tolerance {
        relative: relative + roundings * spec.dtype.unit_roundoff(),
        absolute,
    }))
}

impl Problem for OwnProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn units(&self) -> usize {
        self.units
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        match self.ask(inputs, &[unit]) {
            Some(Ok(mut answers)) => answers.pop().unwrap_or_default(),
            Some(Err(reason)) => panic!("the oracle: {reason}"),
            None => panic!("nobody was asked"),
        }
    }

    /// Its tolerance is given, so that only the rounding of the result counts.
    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let mut slices = self.oracle(inputs, unit);
        for slice in &mut slices {
            let dtype = self.statement.tensors[slice.tensor].dtype;
            slice
                .values
                .iter_mut()
                .for_each(|value| *value = dtype.round(*value));
        }
        slices
    }

    fn ask(&self, inputs: &Inputs, units: &[usize]) -> Option<Result<Vec<Vec<Slice>>, String>> {
        let seat = self.seat.as_ref()?;
        Some(seat.ask(&self.key, self, inputs, units))
    }

    fn tolerance(&self, tensor: usize) -> Option<Tolerance> {
        self.tolerances[tensor]
    }

    fn families(&self) -> Vec<Family> {
        let of_kind = |kind: Kind| {
            let tensors = self.file.tensors.iter().zip(&self.statement.tensors);
            let fills: Vec<_> = tensors
                .filter(|(tensor, _)| tensor.families.contains(&kind))
                .map(|(tensor, spec)| (spec.name, kind.fill(tensor.inputs.as_ref(), &spec.shape)))
                .collect();
            (!fills.is_empty()).then(|| self.statement.family(kind.name(), fills))
        };
        KINDS.into_iter().filter_map(of_kind).collect()
    }
}

#[cfg(test)]
mod tests;
