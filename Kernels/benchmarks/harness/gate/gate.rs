//! The complete check of one contender.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use contender::{Bound, Problem};
use device::{Device, Memory};

use crate::check::{check_full, check_sample, check_written};
use crate::{Answers, Budget, BufferSet, Errors, Failure, Poison};

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateOptions {
    /// Seed of the first inputs, from which that of the second follows.
    pub seed: u64,
    /// Units compared with the oracle on the first inputs.
    pub units: usize,
    /// Units compared on the second inputs, which exist to be different.
    pub units_second: usize,
    /// Draws the units, and the garbage that outputs hold before a run.
    pub entropy: u64,
}

/// Units compared on inputs that only some rounds see.
const UNITS_LATER: usize = 4;

impl GateOptions {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            units: 64,
            units_second: 16,
            entropy: seed,
        }
    }
}

/// What a contender for one problem must get right.
pub struct Gate<'p> {
    problem: &'p dyn Problem,
    entropy: u64,
    first: Rc<Answers>,
    second: Rc<Answers>,
    /// Answers to other inputs, computed when they are first needed.
    later: RefCell<BTreeMap<u64, Rc<Answers>>>,
    /// One per tensor of the problem, over both samples.
    budgets: Vec<Budget>,
    reference: Option<Reference>,
}

/// The output of a plain implementation on the first inputs, which has passed the sample itself.
struct Reference {
    addresses: Vec<Option<usize>>,
    _memory: Vec<Memory>,
}

impl<'p> Gate<'p> {
    /// Computes the correct answers, on the CPU only.
    pub fn new(problem: &'p dyn Problem, options: GateOptions) -> Result<Self, Failure> {
        let most = problem.sampled_units();
        let (units, units_second) = (options.units, options.units_second.min(most.div_ceil(4)));
        let (seed, entropy) = (options.seed, options.entropy);
        let (first, second) = rayon::join(
            || Answers::new(problem, seed, units.min(most), entropy),
            || Answers::new(problem, seed.wrapping_add(1), units_second, !entropy),
        );
        let (first, second) = (first?, second?);
        for (tensor, spec) in problem.tensors().iter().enumerate() {
            let covered = |answers: &Answers| answers.oracle(tensor).next().is_some();
            if spec.role.is_written() && !(covered(&first) && covered(&second)) {
                return Err(Failure::Unsampled { tensor: spec.name });
            }
        }
        let budgets = problem
            .tensors()
            .iter()
            .enumerate()
            .map(|(tensor, spec)| {
                if problem.is_exact(tensor) {
                    return Budget::default();
                }
                let units = first.units.iter().chain(&second.units);
                let honest: Vec<_> = units.map(|unit| unit.honest_deviations(tensor)).collect();
                Budget::new(spec.dtype, &honest, problem.magnitude(tensor))
            })
            .collect();
        Ok(Self {
            problem,
            entropy,
            first: first.into(),
            second: second.into(),
            later: RefCell::default(),
            budgets,
            reference: None,
        })
    }

    /// Checks a contender bound to `set`: the order of its writes, then both inputs. Afterwards the
    /// set holds the first inputs and the contender's answer to them.
    pub fn examine(
        &self,
        set: &mut BufferSet,
        bound: &mut dyn Bound,
    ) -> Result<Vec<Errors>, Failure> {
        let examined = check_order(set, bound).and_then(|()| self.examine_values(set, bound));
        if examined.is_err() {
            // The order of the next contender's writes is checked on these inputs. A lost device is found elsewhere.
            let _ = set.load(self.first.seed);
        }
        examined
    }

    /// `examine` without the order of writes: for the reference, whose output is read after all streams
    /// have finished, and for tests of many problems, some of which get the full check.
    pub fn examine_values(
        &self,
        set: &mut BufferSet,
        bound: &mut dyn Bound,
    ) -> Result<Vec<Errors>, Failure> {
        self.run(set, bound, &self.second, Poison::NotANumber)?;
        self.run(set, bound, &self.first, Poison::Garbage(self.entropy))
    }

    /// One checked run on fresh inputs.
    fn run(
        &self,
        set: &mut BufferSet,
        bound: &mut dyn Bound,
        answers: &Answers,
        poison: Poison,
    ) -> Result<Vec<Errors>, Failure> {
        set.load(answers.seed)?;
        set.poison(poison)?;
        bound.enqueue(set.device().stream())?;
        set.device().synchronize()?;
        self.check(set)
    }

    /// Checks the outputs of a run in a set, and returns the errors of each output tensor.
    pub fn check(&self, set: &BufferSet) -> Result<Vec<Errors>, Failure> {
        let answers = self.answers(set.seed())?;
        set.check_untouched()?;
        check_written(set)?;
        let errors = check_sample(set, &answers, &self.budgets).map_err(|failure| {
            match self.answers_another(set) {
                true => Failure::Stale,
                false => failure,
            }
        })?;
        let reference = self
            .reference
            .as_ref()
            .filter(|_| answers.seed == self.first.seed);
        if let Some(reference) = reference {
            check_full(set, &reference.addresses, &self.budgets)?;
        }
        Ok(errors)
    }

    /// The answers to the inputs of `seed`; of other inputs than the gate's own, a few units.
    fn answers(&self, seed: u64) -> Result<Rc<Answers>, Failure> {
        let own = [&self.first, &self.second].into_iter();
        if let Some(answers) = own.into_iter().find(|answers| answers.seed == seed) {
            return Ok(answers.clone());
        }
        if let Some(answers) = self.later.borrow().get(&seed) {
            return Ok(answers.clone());
        }
        let units = UNITS_LATER.min(self.problem.sampled_units());
        let entropy = self.entropy ^ seed;
        let answers = Rc::new(Answers {
            small: true,
            ..Answers::new(self.problem, seed, units, entropy)?
        });
        self.later.borrow_mut().insert(seed, answers.clone());
        Ok(answers)
    }

    /// Whether the outputs are the answer to other inputs that the contender has seen.
    fn answers_another(&self, set: &BufferSet) -> bool {
        let later = self.later.borrow();
        let mut others = later.values().chain([&self.first, &self.second]);
        others.any(|other| {
            other.seed != set.seed() && check_sample(set, other, &self.budgets).is_ok()
        })
    }

    /// Keeps the outputs in `set` as the full reference. Call it after `examine` has passed.
    pub fn adopt_reference(&mut self, set: &BufferSet) -> Result<(), Failure> {
        assert_eq!(
            set.seed(),
            self.first.seed,
            "the reference answers the first inputs"
        );
        let (mut addresses, mut memories) = (Vec::new(), Vec::new());
        for (spec, buffer) in set.specs().iter().zip(set.buffers()) {
            if !spec.role.is_written() {
                addresses.push(None);
                continue;
            }
            let memory = set.device().allocate(buffer.bytes)?;
            set.device()
                .copy(memory.address(), buffer.address, buffer.bytes)?;
            addresses.push(Some(memory.address()));
            memories.push(memory);
        }
        self.reference = Some(Reference {
            addresses,
            _memory: memories,
        });
        Ok(())
    }
}

/// Fails a contender whose writes are not ordered by the given stream. The set holds intact inputs;
/// tensors updated in place may hold an earlier answer.
fn check_order(set: &mut BufferSet, bound: &mut dyn Bound) -> Result<(), Failure> {
    const WATCHED: u8 = 0xFF;
    set.restore()?;
    let device: &dyn Device = set.device();
    // Once unwatched: a first call loads code and creates streams, which waits for the device and
    // cannot happen while the stream is held.
    bound.enqueue(device.stream())?;
    device.synchronize()?;
    // And once for its duration, including everything it starts on any stream.
    let start = Instant::now();
    bound.enqueue(device.stream())?;
    device.synchronize()?;
    let length = start.elapsed();
    let mut watched = Vec::new();
    for (spec, buffer) in set.specs().iter().zip(set.buffers()) {
        // Tensors updated in place are overwritten too: only the order matters here, not the values.
        if spec.role.is_written() {
            device.set_bytes(buffer.address, buffer.bytes, WATCHED)?;
            watched.push((buffer.address, buffer.bytes));
        }
    }
    let late = device.writes_out_of_order(&watched, WATCHED, length, &mut |stream| {
        bound.enqueue(stream)
    })?;
    if late {
        return Err(Failure::OutOfOrder);
    }
    Ok(())
}
