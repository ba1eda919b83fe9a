//! The owner's side of an oracle: its tensors in f64, what it is asked, and whether to believe it.

use std::ops::Range;
use std::time::Duration;

use contender::{DeviceKind, Problem, Slice};
use device::SharedMapping;
use numeric::DType;
use tensor::{Inputs, TensorSpec};

use crate::message::{Kind, Reply, Request};
use crate::process::Process;
use crate::source::{Source, SourceError};
use crate::statement::Statement;

/// Memory before and after every tensor that nobody may write to.
const GUARD_BYTES: usize = 4096;
const GUARD: u64 = 0xA5A5_5A5A_A5A5_5A5A;
/// What outputs hold before they are written: a NaN that no arithmetic makes.
const POISON: u64 = 0x7FF8_DEAD_BEEF_0001;
/// Units that are asked for twice.
const AGAIN: usize = 4;
/// By how much two answers may differ, relative to the largest value of the unit: threads may add in any order.
const SAME: f64 = 1e-9;
/// Fewer elements than this are not worth a thread.
const PART: usize = 1 << 16;

/// Where an oracle comes from.
#[derive(Clone, Debug)]
pub struct OracleSource {
    /// Absolute: a guest need not have this program's folder.
    path: String,
    options: String,
    pub sha256: String,
}

impl OracleSource {
    /// Reads the file for its digest, but loads nothing.
    pub fn new(source: &Source) -> Result<Self, SourceError> {
        let sha256 = source.sha256()?;
        let path = source.path.canonicalize();
        let path = path.unwrap_or_else(|_| source.path.clone());
        Ok(Self {
            path: path.to_string_lossy().into_owned(),
            options: source.options.clone(),
            sha256,
        })
    }
}

/// An oracle for one problem, in a process of its own.
pub struct Oracle {
    process: Process,
    handle: u32,
    memory: SharedMapping,
    /// Where each tensor begins.
    places: Vec<usize>,
    /// The tensors, for names, types and roles.
    specs: Vec<TensorSpec>,
    units: usize,
}

impl Oracle {
    /// Starts it and gives it the tensors. The error is a sentence.
    pub fn start<P: Problem + ?Sized>(
        source: &OracleSource,
        problem: &P,
        patience: Duration,
    ) -> Result<Self, String> {
        let host = device::host_info();
        let specs = problem.tensors().to_vec();
        let (places, bytes) = layout(&specs, host.memory_bytes)?;
        let memory = SharedMapping::new(bytes);
        let memory = memory.map_err(|error| format!("no memory for its tensors: {error}"))?;
        let loaded = Process::load(
            &source.path,
            Kind::Oracle,
            host.memory_bytes,
            Some(patience),
        );
        let mut process = loaded.map_err(|error| error.0)?;
        let statement = Statement {
            device: DeviceKind::Cpu,
            ..Statement::new(problem, &host, &source.options)
        };
        let request = Request::Bind {
            statement,
            places: places.clone(),
            bytes,
        };
        let reply = process.ask(&request, memory.file(), "being given its tensors");
        let handle = match reply.map_err(|error| error.0)? {
            Reply::Bound(handle) => handle,
            other => return Err(format!("gave an answer to another question: {other:?}")),
        };
        Ok(Self {
            process,
            handle,
            memory,
            places,
            specs,
            units: problem.units(),
        })
    }

    /// The correct values of some units, asked for and checked. The error is a sentence.
    pub fn ask(&mut self, inputs: &Inputs, units: &[usize]) -> Result<Vec<Vec<Slice>>, String> {
        self.load(inputs);
        let sum = self.sum();
        let answers: Result<Vec<_>, _> = units
            .iter()
            .map(|unit| self.answer(inputs, *unit))
            .collect();
        let answers = answers?;
        let step = units.len().div_ceil(AGAIN).max(1);
        for (unit, first) in units.iter().zip(&answers).step_by(step).rev() {
            let second = self.answer(inputs, *unit)?;
            self.compare(*unit, first, &second)?;
        }
        if self.sum() != sum {
            return Err("changes its inputs, or memory beside them".into());
        }
        Ok(answers)
    }

    /// One tensor. The guest is halted whenever this process runs.
    fn tensor(&mut self, tensor: usize) -> &mut [f64] {
        let (place, elements) = (self.places[tensor], self.specs[tensor].elements());
        // SAFETY: `layout` has placed it inside the mapping, aligned to a page, and nobody else has it: the guest,
        // which maps the same memory, is stopped until it is asked again.
        unsafe {
            let start = (self.memory.address() + place) as *mut f64;
            std::slice::from_raw_parts_mut(start, elements)
        }
    }

    /// All of the memory, as words.
    fn words(&mut self) -> &mut [u64] {
        let words = self.memory.bytes() / size_of::<u64>();
        // SAFETY: the mapping, as above.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address() as *mut u64, words) }
    }

    /// Fills everything: guards, inputs, poison.
    fn load(&mut self, inputs: &Inputs) {
        in_parts(self.words(), &|_, part| part.fill(GUARD));
        for tensor in 0..self.specs.len() {
            self.fill(inputs, tensor, 0..self.specs[tensor].elements());
        }
    }

    /// What a part of a tensor holds before it is written.
    fn fill(&mut self, inputs: &Inputs, tensor: usize, range: Range<usize>) {
        let read = self.specs[tensor].role.is_read();
        let start = range.start;
        in_parts(&mut self.tensor(tensor)[range], &|at, values| match read {
            true => inputs.range_into(tensor, start + at, values),
            false => values.fill(f64::from_bits(POISON)),
        });
    }

    /// The sum of all bits that it may not change: inputs and guards.
    fn sum(&mut self) -> u64 {
        let written: Vec<Range<usize>> = (0..self.specs.len())
            .filter(|tensor| self.specs[*tensor].role.is_written())
            .map(|tensor| {
                let start = self.places[tensor] / size_of::<u64>();
                start..start + self.specs[tensor].elements()
            })
            .collect();
        let words = &*self.words();
        // A word counts with its place, so that two that change places are seen.
        let sum = |range: Range<usize>| {
            let words = words[range.clone()].iter().zip(range);
            words.fold(0u64, |sum, (word, place)| {
                sum.wrapping_add(word.wrapping_mul(2 * place as u64 + 1))
            })
        };
        let (mut total, mut at) = (0u64, 0);
        for range in written {
            total = total.wrapping_add(sum(at..range.start));
            at = range.end;
        }
        total.wrapping_add(sum(at..words.len()))
    }

    /// Asks for one unit.
    fn answer(&mut self, inputs: &Inputs, unit: usize) -> Result<Vec<Slice>, String> {
        let request = Request::Answer {
            handle: self.handle,
            unit: unit as u64,
            units: self.units as u64,
        };
        let what = format!("answering unit {unit} of {}", self.units);
        let reply = self.process.ask(&request, None, &what);
        match reply.map_err(|error| error.0)? {
            Reply::Answered => {}
            other => return Err(format!("gave an answer to another question: {other:?}")),
        }
        let mut slices = Vec::new();
        for tensor in 0..self.specs.len() {
            if !self.specs[tensor].role.is_written() {
                continue;
            }
            self.check_guards(tensor)?;
            let each = self.specs[tensor].elements() / self.units;
            let range = unit * each..(unit + 1) * each;
            let values = self.tensor(tensor)[range.clone()].to_vec();
            check_values(&self.specs[tensor], unit, range.start, &values)?;
            self.fill(inputs, tensor, range.clone());
            slices.push(Slice {
                tensor,
                start: range.start,
                values,
            });
        }
        Ok(slices)
    }

    /// Fails if it has written next to a tensor.
    fn check_guards(&mut self, tensor: usize) -> Result<(), String> {
        let name = self.specs[tensor].name;
        let (start, elements) = (self.places[tensor] / 8, self.specs[tensor].elements());
        let (guard, end) = (GUARD_BYTES / 8, start + elements);
        let words = self.words();
        for (range, side) in [
            (start - guard..start, "before the beginning"),
            (end..end + guard, "past the end"),
        ] {
            if words[range].iter().any(|word| *word != GUARD) {
                return Err(format!(
                    "writes out of bounds: {side} of '{name}', which has {elements} elements"
                ));
            }
        }
        Ok(())
    }

    fn compare(&self, unit: usize, first: &[Slice], second: &[Slice]) -> Result<(), String> {
        for (first, second) in first.iter().zip(second) {
            let pairs = first.values.iter().zip(&second.values);
            let largest = first
                .values
                .iter()
                .fold(0f64, |most, it| most.max(it.abs()));
            let mut pairs = pairs.enumerate();
            let differs = pairs.find(|(_, (a, b))| (*a - *b).abs() > SAME * largest);
            if let Some((at, (was, is))) = differs {
                let (name, index) = (self.specs[first.tensor].name, first.start + at);
                return Err(format!(
                    "disagrees with itself: asked twice for unit {unit}, element {index} of '{name}' was {was:e} and \
                     is {is:e}"
                ));
            }
        }
        Ok(())
    }
}

/// Does work on parts of a slice, which begin at the given places. Threads of its own: whoever asks an oracle waits for
/// a lock, and a pool's thread that waits for a part would take up other work, and wait for the same lock.
fn in_parts<T: Send>(all: &mut [T], work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let step = all.len().div_ceil(threads).max(PART);
    if all.len() <= step {
        return work(0, all);
    }
    std::thread::scope(|scope| {
        for (part, values) in all.chunks_mut(step).enumerate() {
            scope.spawn(move || work(part * step, values));
        }
    });
}

/// Places of the tensors between guards, and how much memory that takes.
fn layout(specs: &[TensorSpec], memory_bytes: u64) -> Result<(Vec<usize>, usize), String> {
    let most = memory_bytes as usize / 2;
    let mut at = GUARD_BYTES;
    let mut places = Vec::new();
    for spec in specs {
        places.push(at);
        let end = spec.elements().checked_mul(size_of::<f64>());
        let end = end.and_then(|bytes| bytes.checked_add(at + GUARD_BYTES));
        at = end
            .and_then(|end| end.checked_next_multiple_of(GUARD_BYTES))
            .filter(|end| *end <= most)
            .ok_or_else(|| {
                format!(
                    "needs its tensors in f64, which is more than half of this machine's {} GiB of memory: choose a \
                     smaller shape",
                    memory_bytes >> 30
                )
            })?;
    }
    Ok((places, at))
}

/// Fails if a unit of an output is not what its type can be compared with.
fn check_values(
    spec: &TensorSpec,
    unit: usize,
    start: usize,
    values: &[f64],
) -> Result<(), String> {
    let (name, count) = (spec.name, values.len());
    let bad = |value: &&f64| !value.is_finite();
    let missing = values.iter().filter(|it| it.to_bits() == POISON).count();
    if missing > 0 {
        let first = values.iter().position(|it| it.to_bits() == POISON);
        let first = start + first.unwrap_or_default();
        return Err(format!(
            "leaves {missing} of the {count} elements of '{name}' in unit {unit} unwritten, the first at {first}"
        ));
    }
    let not_finite = values.iter().filter(bad).count();
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        let (index, value) = (start + at, values[at]);
        return Err(format!(
            "writes {not_finite} of the {count} elements of '{name}' in unit {unit} as no finite number, the first, at \
             {index}, as {value}"
        ));
    }
    if matches!(spec.dtype, DType::I32 | DType::I64) {
        let fits = |value: &f64| spec.dtype.round(*value) == *value;
        if let Some(at) = values.iter().position(|value| !fits(value)) {
            let (index, value, dtype) = (start + at, values[at], spec.dtype);
            return Err(format!(
                "writes {value:e} to element {index} of '{name}', which is no {dtype}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(dtype: DType) -> TensorSpec {
        TensorSpec::output("y", dtype, &[2, 3])
    }

    #[test]
    fn tensors_lie_between_guards_within_half_of_the_memory() {
        let specs = [output(DType::Bf16), output(DType::I32)];
        let (places, bytes) = layout(&specs, 1 << 20).unwrap();
        assert_eq!((places, bytes), (vec![4096, 12288], 20480));
        let large = TensorSpec::input("x", DType::Bf16, &[1 << 20, 1 << 20]);
        let error = layout(&[large], 8 << 30).unwrap_err();
        assert!(error.contains("half of this machine's 8 GiB"), "{error}");
    }

    #[test]
    fn values_that_cannot_be_compared_are_named() {
        let poison = f64::from_bits(POISON);
        for (dtype, values, reason) in [
            (DType::F32, [1.0, poison, poison], "leaves 2 of the 3"),
            (DType::F32, [1.0, f64::NAN, 3.0], "the first, at 4, as NaN"),
            (DType::F32, [f64::INFINITY; 3], "writes 3 of the 3"),
            (DType::I32, [1.0, 2.5, 3.0], "which is no i32"),
            (DType::I32, [1.0, 2.0, 3e10], "which is no i32"),
        ] {
            let error = check_values(&output(dtype), 1, 3, &values).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(check_values(&output(DType::Bf16), 0, 0, &[1.0, 2.5, 1e300]).is_ok());
    }
}
