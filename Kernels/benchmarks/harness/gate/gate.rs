//! The complete check of one contender.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;

use contender::{Bound, Family, Piece, Problem};
use device::Device;
use numeric::{bits, index_below, one_way};
use rayon::prelude::*;
use tensor::{Fill, TensorSpec};

use crate::answers::budgets;
use crate::check::{check_full, check_sample, check_written};
use crate::reference::{Bind, Reference};
use crate::{Answers, Budget, BufferSet, Coverage, Errors, Failure, Margin, Poison};

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateOptions {
    /// Seed of the first inputs, from which that of the second follows.
    pub seed: u64,
    /// Units compared with the oracle on the first inputs.
    pub units: usize,
    /// Units compared on the second inputs, which exist to be different.
    pub units_second: usize,
    /// Most other kinds of inputs that are tried; which ones is drawn.
    pub kinds: usize,
    /// Draws the units, the kinds, and the garbage that outputs hold before a run.
    pub entropy: u64,
    /// How many times the honest error is allowed.
    pub margin: Margin,
}

/// Units compared in a round of a race.
const UNITS_AGAIN: usize = 8;

/// Most units compared on inputs that only some rounds see, or of another kind than those that are timed.
const UNITS_FEW: usize = 4;

/// Random stream for the seeds of inputs of other kinds.
const FAMILY_STREAM: u32 = u32::MAX - 16;

/// Random stream for the garbage that outputs hold.
const GARBAGE_STREAM: u32 = u32::MAX - 19;

/// Random stream for the choice of units in a race.
const AGAIN_STREAM: u32 = u32::MAX - 18;

/// Random stream for the choice of kinds.
const CHOICE_STREAM: u32 = u32::MAX - 17;

impl GateOptions {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            units: 64,
            units_second: 16,
            kinds: usize::MAX,
            entropy: seed,
            margin: Margin::Timed,
        }
    }

    /// For contenders that have passed the whole before: fewer units, no other kinds.
    pub fn again(self) -> Self {
        Self {
            units: 16,
            units_second: 4,
            kinds: 0,
            margin: Margin::Again,
            ..self
        }
    }
}

/// What a contender for one problem must get right.
pub struct Gate<'p> {
    problem: &'p dyn Problem,
    entropy: u64,
    first: Rc<Answers>,
    second: Rc<Answers>,
    /// To inputs of other kinds, one of each.
    kinds: Vec<Rc<Answers>>,
    /// Some kind has others of the inputs that are the same for every seed.
    rewrites_fixed: bool,
    /// Answers to other inputs, computed when they are first needed.
    later: RefCell<BTreeMap<u64, Rc<Answers>>>,
    /// One per tensor of the problem, over both samples.
    budgets: RefCell<Rc<[Budget]>>,
    /// Those of tiles that differed from the reference by more, by tensor and beginning.
    near: RefCell<BTreeMap<(usize, usize), Option<Budget>>>,
    /// They are from few units, and nobody has needed better ones.
    from_few: Cell<bool>,
    reference: Option<Reference>,
    /// Draws of the units that a race compares.
    draws: Cell<u64>,
}

impl<'p> Gate<'p> {
    /// Computes the correct answers, on the CPU only.
    pub fn new(problem: &'p dyn Problem, options: GateOptions) -> Result<Self, Failure> {
        let most = affordable_units(problem);
        let (units, units_second) = (options.units, options.units_second.min(most.div_ceil(4)));
        let (seed, entropy) = (options.seed, options.entropy);
        let of_kind = |(kind, family)| {
            let seed = one_way(entropy, FAMILY_STREAM, kind as u64);
            let few = few_units(problem).min(units);
            Answers::of_family(problem, family, seed, few, entropy ^ seed)
        };
        let (own, kinds) = rayon::join(
            || {
                rayon::join(
                    || Answers::new(problem, seed, units.min(most), entropy),
                    || Answers::new(problem, seed.wrapping_add(1), units_second, !entropy),
                )
            },
            || {
                let kinds = drawn(problem.families(), options.kinds, entropy);
                let kinds = kinds.into_par_iter().map(of_kind);
                kinds.collect::<Result<Vec<Answers>, Failure>>()
            },
        );
        let (first, second, kinds) = (own.0?, own.1?, kinds?);
        let families = kinds.iter().filter_map(|answers| answers.kind.as_ref());
        let rewrites_fixed = families
            .flat_map(|kind| kind.family.tensors.iter().zip(problem.tensors()))
            .any(|(other, own)| matches!(own.fill, Fill::Bytes(_)) && own.fill != other.fill);
        for (tensor, spec) in problem.tensors().iter().enumerate() {
            let covered = |answers: &Answers| answers.oracle(tensor).next().is_some();
            if spec.role.is_written() && !(covered(&first) && covered(&second)) {
                return Err(Failure::Unsampled { tensor: spec.name });
            }
        }
        let units = first.units.iter().chain(&second.units);
        let budgets = budgets(problem, units, options.margin);
        Ok(Self {
            from_few: Cell::new(options.margin == Margin::Again),
            problem,
            entropy,
            first: first.into(),
            second: second.into(),
            kinds: kinds.into_iter().map(Rc::new).collect(),
            rewrites_fixed,
            later: RefCell::default(),
            budgets: RefCell::new(budgets.into()),
            near: RefCell::default(),
            reference: None,
            draws: Cell::new(0),
        })
    }

    /// Checks a contender bound to `set`: the order of its writes, then both inputs. Afterwards the
    /// set holds the first inputs and the contender's answer to them.
    pub fn examine(&self, set: &BufferSet, bound: &mut dyn Bound) -> Result<Vec<Errors>, Failure> {
        self.examine_order(set, bound)?;
        self.examine_values(set, bound)
    }

    /// The first part of it: fails a contender whose writes are not ordered by the given stream, or who writes where
    /// the next one reads.
    pub fn examine_order(&self, set: &BufferSet, bound: &mut dyn Bound) -> Result<(), Failure> {
        let checked = check_order(set, bound).and_then(|()| set.check_untouched());
        self.left_as_found(set, checked)
    }

    /// After a failure the set holds the first inputs again: the order of the next contender's writes is checked on
    /// them. A lost device is found elsewhere.
    fn left_as_found<T>(&self, set: &BufferSet, found: Result<T, Failure>) -> Result<T, Failure> {
        if found.is_err() {
            let _ = set.load(self.first.seed);
        }
        found
    }

    /// `examine` without the order of writes, for those who have passed the whole before.
    pub fn examine_values(
        &self,
        set: &BufferSet,
        bound: &mut dyn Bound,
    ) -> Result<Vec<Errors>, Failure> {
        let last = self.rounds() - 1;
        for round in 0..last {
            self.examine_round(round, set, bound)?;
        }
        self.examine_round(last, set, bound)
    }

    /// Rounds of an examination: the second inputs, those of other kinds, the first.
    pub fn rounds(&self) -> usize {
        2 + self.kinds.len()
    }

    /// One of them. Contenders that take turns in each find most inputs where the one before has left them.
    pub fn examine_round(
        &self,
        round: usize,
        set: &BufferSet,
        bound: &mut dyn Bound,
    ) -> Result<Vec<Errors>, Failure> {
        let (answers, poison) = match round.checked_sub(1) {
            None => (&self.second, Poison::NotANumber),
            Some(kind) if kind < self.kinds.len() => (&self.kinds[kind], Poison::NotANumber),
            Some(_) => (&self.first, self.garbage()),
        };
        self.left_as_found(set, self.run(set, bound, answers, poison))
    }

    /// What is asked of the reference, which is slow and not timed: its output is read after all
    /// streams have finished, and only on the inputs that are.
    pub fn examine_reference(
        &self,
        set: &BufferSet,
        bound: &mut dyn Bound,
    ) -> Result<Vec<Errors>, Failure> {
        self.run(set, bound, &self.second, Poison::NotANumber)?;
        self.run(set, bound, &self.first, self.garbage())
    }

    fn garbage(&self) -> Poison {
        Poison::Garbage(one_way(self.entropy, GARBAGE_STREAM, 0))
    }

    /// One checked run on fresh inputs.
    fn run(
        &self,
        set: &BufferSet,
        bound: &mut dyn Bound,
        answers: &Answers,
        poison: Poison,
    ) -> Result<Vec<Errors>, Failure> {
        let family = answers.kind.as_ref().map(|kind| &kind.family);
        set.prepare(family, answers.seed, poison)?;
        if self.rewrites_fixed {
            bound.reread()?;
            // Whoever captures a graph again has run it: what that wrote must not pass for an answer.
            set.prepare(family, answers.seed, poison)?;
        }
        bound.enqueue(set.device().stream())?;
        set.device().synchronize()?;
        self.check(set)
    }

    /// Checks the outputs of a run in a set, and returns the errors of each output tensor.
    pub fn check(&self, set: &BufferSet) -> Result<Vec<Errors>, Failure> {
        let answers = self.answers(set.seed())?;
        self.check_units(set, &answers, &all_units(&answers))
    }

    /// The same during a race, for those who have passed before: only some units are compared with the oracle,
    /// drawn anew each time.
    pub fn check_again(&self, set: &BufferSet) -> Result<(), Failure> {
        let answers = self.answers(set.seed())?;
        let draw = self.draws.replace(self.draws.get() + 1);
        let units = some_units(answers.units.len(), self.entropy, draw);
        self.check_units(set, &answers, &units).map(drop)
    }

    fn check_units(
        &self,
        set: &BufferSet,
        answers: &Answers,
        units: &[usize],
    ) -> Result<Vec<Errors>, Failure> {
        match &answers.kind {
            Some(kind) => self
                .check_outputs(set, answers, units, &kind.budgets)
                .map_err(|failure| failure.on(kind.family.name)),
            None => {
                let checked = self.check_outputs(set, answers, units, &self.budgets());
                match checked {
                    Err(Failure::Inaccurate { .. }) if self.learn_more()? => {
                        self.check_outputs(set, answers, units, &self.budgets())
                    }
                    checked => checked,
                }
            }
        }
    }

    fn budgets(&self) -> Rc<[Budget]> {
        self.budgets.borrow().clone()
    }

    /// Makes up for a tolerance that is from few units, once: of as many as those had who were examined the first time.
    fn learn_more(&self) -> Result<bool, Failure> {
        if !self.from_few.take() {
            return Ok(false);
        }
        let options = GateOptions::new(self.first.seed);
        let most = affordable_units(self.problem);
        let answers =
            |seed, units: usize| Answers::new(self.problem, seed, units, !self.entropy ^ seed);
        let first = answers(self.first.seed, options.units.min(most))?;
        let second = answers(self.second.seed, options.units_second.min(most.div_ceil(4)))?;
        let units = first.units.iter().chain(&second.units);
        let learned = budgets(self.problem, units, Margin::Timed);
        let known = self.budgets();
        let both = known
            .iter()
            .zip(learned)
            .map(|(known, learned)| known.or(learned));
        *self.budgets.borrow_mut() = both.collect();
        Ok(true)
    }

    fn check_outputs(
        &self,
        set: &BufferSet,
        answers: &Answers,
        units: &[usize],
        budgets: &[Budget],
    ) -> Result<Vec<Errors>, Failure> {
        set.check_untouched()?;
        check_written(set, answers)?;
        let errors = check_sample(set, answers, units, budgets).map_err(|failure| {
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
            let near = |tensor, tile: &_| self.budget_near(tensor, tile);
            check_full(set, &reference.parts, &self.budgets(), &near)?;
        }
        Ok(errors)
    }

    /// The tolerance of a tile of an output on the first inputs, from some units in it.
    fn budget_near(&self, tensor: usize, tile: &Range<usize>) -> Result<Option<Budget>, Failure> {
        let place = (tensor, tile.start);
        if let Some(budget) = self.near.borrow().get(&place) {
            return Ok(*budget);
        }
        let answers = match self.problem.is_exact(tensor) {
            true => None,
            false => self.first.within(self.problem, tensor, tile)?,
        };
        let of =
            |answers: Answers| budgets(self.problem, answers.units.iter(), Margin::Timed)[tensor];
        let budget = answers.map(of);
        self.near.borrow_mut().insert(place, budget);
        Ok(budget)
    }

    /// The answers to the inputs of `seed`; of other inputs than the gate's own, a few units.
    fn answers(&self, seed: u64) -> Result<Rc<Answers>, Failure> {
        let own = [&self.first, &self.second].into_iter().chain(&self.kinds);
        if let Some(answers) = own.into_iter().find(|answers| answers.seed == seed) {
            return Ok(answers.clone());
        }
        if let Some(answers) = self.later.borrow().get(&seed) {
            return Ok(answers.clone());
        }
        let answers = Rc::new(later(self.problem, seed, self.entropy)?);
        self.later.borrow_mut().insert(seed, answers.clone());
        Ok(answers)
    }

    /// Computes the answers to the inputs of these seeds on all cores, rather than one after the
    /// other when they are first needed. Those that fail are left for then.
    pub fn foresee(&self, seeds: Vec<u64>) {
        let (problem, entropy) = (self.problem, self.entropy);
        let answer = |seed| later(problem, seed, entropy).ok();
        let answers: Vec<Answers> = seeds.into_par_iter().filter_map(answer).collect();
        let answers = answers.into_iter().map(|each| (each.seed, Rc::new(each)));
        self.later.borrow_mut().extend(answers);
    }

    /// Whether the outputs are the answer to other inputs that the contender has seen.
    fn answers_another(&self, set: &BufferSet) -> bool {
        let later = self.later.borrow();
        let mut others = later.values().chain([&self.first, &self.second]);
        others.any(|other| {
            let all = all_units(other);
            other.seed != set.seed() && check_sample(set, other, &all, &self.budgets()).is_ok()
        })
    }

    /// Keeps the outputs in `set` as the reference, in full if memory allows. Call it after
    /// `examine_reference` has passed.
    pub fn adopt_reference(&mut self, set: &BufferSet) -> Result<(), Failure> {
        assert_eq!(
            set.seed(),
            self.first.seed,
            "the reference answers the first inputs"
        );
        self.reference = Reference::copied(set, self.entropy)?;
        Ok(())
    }

    /// Has the reference solve some pieces of a problem that is too large for it, on the inputs in
    /// `set`, and checks them against the sampled units.
    pub fn adopt_pieces(
        &mut self,
        set: &BufferSet,
        pieces: &[Piece],
        bind: &mut Bind,
    ) -> Result<(), Failure> {
        let budgets = self.budgets();
        let known = (&*self.first, &*budgets);
        self.reference = Reference::in_pieces(set, pieces, known, self.entropy, bind)?;
        Ok(())
    }

    /// How much is compared with a reference.
    pub fn coverage(&self) -> Coverage {
        let reference = self.reference.as_ref();
        reference.map_or(Coverage::Sample, |reference| reference.coverage)
    }

    /// The other kinds of inputs that contenders pass.
    pub fn kinds(&self) -> Vec<&'static str> {
        let kinds = self
            .kinds
            .iter()
            .filter_map(|answers| answers.kind.as_ref());
        kinds.map(|kind| kind.family.name).collect()
    }
}

/// Units that are worth their time: those of wide rows have more elements than a check needs.
fn affordable_units(problem: &dyn Problem) -> usize {
    const ELEMENTS: usize = 1 << 20;
    const UNITS_MIN: usize = 8;
    let written = problem
        .tensors()
        .iter()
        .filter(|spec| spec.role.is_written());
    let written: usize = written.map(TensorSpec::elements).sum();
    let per_unit = written.div_ceil(problem.units().max(1)).max(1);
    problem
        .sampled_units()
        .min((ELEMENTS / per_unit).max(UNITS_MIN))
}

/// As few units as tell right from wrong.
fn few_units(problem: &dyn Problem) -> usize {
    let few = problem.sampled_units().div_ceil(16);
    few.min(UNITS_FEW).min(affordable_units(problem))
}

/// A few units of the answers to inputs that only some rounds see.
fn later(problem: &dyn Problem, seed: u64, entropy: u64) -> Result<Answers, Failure> {
    Ok(Answers {
        small: true,
        ..Answers::new(problem, seed, few_units(problem), entropy ^ seed)?
    })
}

/// The places of all sampled units.
fn all_units(answers: &Answers) -> Vec<usize> {
    (0..answers.units.len()).collect()
}

/// The places of some sampled units, which are ascending and drawn themselves: one of each of as many equal parts, so
/// that no part of an output is left out for long.
fn some_units(units: usize, entropy: u64, draw: u64) -> Vec<usize> {
    let parts = UNITS_AGAIN.min(units);
    let one_of = |part: usize| {
        let (start, end) = (part * units / parts, (part + 1) * units / parts);
        let bits = bits(
            entropy,
            AGAIN_STREAM,
            draw * UNITS_AGAIN as u64 + part as u64,
        );
        start + index_below(bits, (end - start) as u32) as usize
    };
    (0..parts).map(one_of).collect()
}

/// At most `most` of the families, with their places.
fn drawn(families: Vec<Family>, most: usize, entropy: u64) -> Vec<(usize, Family)> {
    let mut families: Vec<_> = families.into_iter().enumerate().collect();
    for draw in 0..families.len().saturating_sub(most) {
        let random = bits(entropy, CHOICE_STREAM, draw as u64);
        families.remove(index_below(random, families.len() as u32) as usize);
    }
    families
}

/// Fails a contender whose writes are not ordered by the given stream. The set holds intact inputs;
/// tensors updated in place may hold an earlier answer.
fn check_order(set: &BufferSet, bound: &mut dyn Bound) -> Result<(), Failure> {
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
            watched.push(*buffer);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_compared_in_some_round() {
        assert!(some_units(0, 1, 0).is_empty());
        assert_eq!(some_units(5, 1, 0), [0, 1, 2, 3, 4]);
        let mut seen = std::collections::BTreeSet::new();
        for draw in 0..400 {
            let units = some_units(64, 7, draw);
            assert_eq!(units.len(), UNITS_AGAIN);
            // No quarter of an output is missed.
            assert!((0..4).all(|part| units.iter().any(|unit| unit / 16 == part)));
            seen.extend(units);
        }
        assert_eq!(seen, (0..64).collect());
    }

    #[test]
    fn kinds_are_drawn_without_repeats_and_each_by_some_entropy() {
        let families = || {
            let family = |name| Family {
                name,
                tensors: Vec::new(),
            };
            ["large", "drift", "outliers"].map(family).to_vec()
        };
        let places = |most, entropy| -> Vec<usize> {
            let drawn = drawn(families(), most, entropy);
            drawn.into_iter().map(|(place, _)| place).collect()
        };
        assert_eq!(places(usize::MAX, 1), [0, 1, 2]);
        assert!(places(0, 1).is_empty());
        let mut seen = std::collections::BTreeSet::new();
        for entropy in 0..100 {
            let two = places(2, entropy);
            assert!(two.len() == 2 && two[0] < two[1]);
            seen.extend(two);
        }
        assert_eq!(seen.len(), 3);
    }
}
