//! One workload, from buffers to outcomes.

use std::cell::RefCell;

use contender::{Buffer, ContenderError, Identity, Kind, Support};
use device::{Device, DeviceError, DeviceKind};
use gate::{Errors, Failure, Gate, GateOptions};
use timing::{
    energy_j, floor_us, is_compute_bound, obstacle_to_steady, race, validate, CacheState, Course,
    Energy, Lane, LaneFailure, Limits, Plan, Roofs, Rotation, Step, Timing,
};

use crate::erased::{AnyContender, AnyProblem};
use crate::outcome::{Emulated, Measured, Outcome};
use crate::pairs::pairs_to_know;
use crate::planners::Planners;
use crate::preset::Preset;
use crate::protocol::Task;
use crate::selection::{fingerprint, Selection};
use crate::voice::Voice;

/// What all workloads of a worker share.
pub struct Workshop<'a> {
    pub device: &'a dyn Device,
    pub plan: Plan,
    pub verify: bool,
    pub baseline: Option<&'a str>,
    pub roofs: Roofs,
    pub selection: &'a Selection,
    pub planners: RefCell<Planners>,
    /// Of the protocol, if it has a name.
    pub preset: Option<Preset>,
    /// That every workload is measured in.
    pub processes: usize,
}

fn kinds(gate: &Gate) -> Vec<String> {
    gate.kinds().into_iter().map(str::to_owned).collect()
}

/// A failure of the reference, which is nobody's row.
fn of_reference(failure: Failure) -> Failure {
    match failure {
        Failure::Device(error) => Failure::Device(error),
        wrong => ContenderError::new(format!("the reference {wrong}")).into(),
    }
}

/// A thread that never rests may have no core while one of them lasts.
const LOOKS_FOR_REST: usize = 3;

/// The device no longer answers; the process has to be replaced.
pub struct DeviceLost;

/// A contender that has passed the gate; its lane has the same index.
struct Entrant<'a> {
    identity: &'a Identity,
    errors: Vec<Errors>,
}

impl Workshop<'_> {
    /// Measures a task and reports the outcome of each contender.
    pub fn measure(&self, task: &Task, voice: &mut Voice) -> Result<(), DeviceLost> {
        let problem = match self.selection.problems.get(task.problem) {
            Some(problem) if fingerprint(&**problem) == task.expected => &**problem,
            _ => {
                let changed = "the workload file was changed during the run; measure again";
                for name in &task.contenders {
                    voice.outcome(name, Outcome::Error(changed.to_owned()));
                }
                return Ok(());
            }
        };
        let contenders = self.supporting(problem, task, voice);
        if contenders.is_empty() {
            return Ok(());
        }
        if let Some(obstacle) = self.obstacle(problem) {
            for contender in contenders {
                let name = &contender.identity().name;
                voice.outcome(name, Outcome::Unsupported(obstacle.clone()));
            }
            return Ok(());
        }
        voice.step(None, "preparing inputs");
        let course = match self.course(problem) {
            Ok(course) => course,
            Err(error) => return self.fail_all(&contenders, &error.into(), voice),
        };
        voice.step(None, "computing the oracle's answers");
        let plan = self.plan_for(problem, task.process, &contenders);
        let gate = match self.gate(problem, &plan, task.process, &course, voice) {
            Ok(gate) => gate,
            Err(failure) => return self.fail_all(&contenders, &failure, voice),
        };
        let (mut entrants, mut waiting) = (Vec::new(), Vec::new());
        for contender in contenders {
            let identity = contender.identity();
            let order = gate.as_ref().filter(|_| task.process == 0);
            match self.admit(problem, contender, &course, order, voice) {
                Ok(lane) => {
                    let errors = Vec::new();
                    waiting.push((lane, Entrant { identity, errors }));
                }
                Err(failure) => self.fail(&identity.name, &failure, voice)?,
            }
            // On the CPU only whoever ran last can be blamed for threads that do not rest.
            if self.device.info().kind == DeviceKind::Cpu {
                let alone = std::mem::take(&mut waiting);
                entrants.extend(self.examine(gate.as_ref(), &course, alone, voice)?);
            }
        }
        entrants.extend(self.examine(gate.as_ref(), &course, waiting, voice)?);
        match &gate {
            Some(gate) if self.device.info().emulated => {
                self.count_all(&course, entrants, gate, voice)
            }
            gate => {
                if let (Some(gate), false) = (gate.as_ref(), entrants.is_empty()) {
                    voice.step(None, "computing the oracle's answers");
                    course.foresee(gate, &plan);
                }
                self.race_all(problem, plan, &course, entrants, gate.as_ref(), voice)
            }
        }
    }

    /// On a device without a clock: has each run in all ways that its rounds have not had, then once more, and reports
    /// what it did.
    fn count_all(
        &self,
        course: &Course,
        entrants: Vec<(Lane, Entrant)>,
        gate: &Gate,
        voice: &mut Voice,
    ) -> Result<(), DeviceLost> {
        for (mut lane, Entrant { identity, errors }) in entrants {
            voice.step(Some(&identity.name), "passing the gate");
            let own = lane.own_course();
            let set = own.as_deref().unwrap_or(course).first();
            let mut others = gate.rounds()..self.device.ways();
            let failed = others.find_map(|way| {
                self.device.execute_in(way);
                let examined = gate.examine_round(gate.rounds() - 1, set, &mut lane.first());
                examined.err()
            });
            if let Some(failure) = failed {
                self.fail(&identity.name, &failure, voice)?;
                continue;
            }
            voice.step(Some(&identity.name), "being counted");
            self.device.execute_in(0);
            self.device.take_counters();
            if let Err(error) = lane.enqueue(0, self.device.stream()) {
                self.fail(&identity.name, &error.into(), voice)?;
                continue;
            }
            let mut facts = lane.facts();
            facts.extend(self.device.take_counters().unwrap_or_default());
            let emulated = Emulated {
                errors,
                also_right_on: kinds(gate),
                reference: gate.coverage().to_string(),
                facts,
            };
            voice.outcome(&identity.name, Outcome::Emulated(Box::new(emulated)));
        }
        Ok(())
    }

    /// The protocol, with order and checks of its own for each workload and process, the same in
    /// every run that has them.
    fn plan_for(&self, problem: &AnyProblem, process: usize, contenders: &[&AnyContender]) -> Plan {
        let (op, dtype, workload) = (problem.op(), problem.dtype(), problem.workload());
        let (suite, name) = (&workload.suite, &workload.name);
        let what = format!("{op} {dtype} {suite}/{name}");
        let mut plan = self.plan.for_another(&format!("{what} {process}"));
        // Nobody knows which process will be traced.
        let drawn = self.plan.for_another(&what).entropy % self.processes as u64;
        plan.trace = drawn == process as u64;
        let mut kinds = contenders.iter().map(|each| each.identity().kind);
        if kinds.any(|kind| kind == Kind::Control) {
            let budget = self.preset.map(Preset::control_budget);
            plan.rule.budget = budget.unwrap_or(plan.rule.budget);
        }
        // Energy does not differ between processes, and memory does not draw enough to limit the clock.
        let cost = problem.cost();
        let (cache, l2_bytes) = (plan.cache, self.device.info().l2_bytes);
        let draws = is_compute_bound(&cost, cache, l2_bytes, &self.roofs) != Some(false);
        plan.energy = plan
            .energy
            .filter(|energy| process == 0 && (draws || !energy.limited_only));
        plan
    }

    /// Why nobody can be measured on it in this way, if so.
    fn obstacle(&self, problem: &AnyProblem) -> Option<String> {
        self.plan.steady?;
        let specs = problem.tensors();
        let rotation = Rotation::new(specs, self.plan.cache, self.device.info());
        obstacle_to_steady(specs, &rotation)
    }

    /// The buffers: as many sets as the cache size requires, or one if memory is short.
    fn course<'p>(&'p self, problem: &'p AnyProblem) -> Result<Course<'p>, DeviceError> {
        let (specs, cache) = (problem.tensors(), self.plan.cache);
        let rotation = Rotation::new(specs, cache, self.device.info());
        match Course::new(self.device, specs, rotation, self.plan.seed) {
            Err(DeviceError::OutOfMemory { .. }) if rotation.sets > 1 => {
                let single = Rotation {
                    sets: 1,
                    flush: cache == CacheState::Cold,
                };
                Course::new(self.device, specs, single, self.plan.seed)
            }
            course => course,
        }
    }

    /// The task's contenders that support the problem here.
    fn supporting(
        &self,
        problem: &AnyProblem,
        task: &Task,
        voice: &mut Voice,
    ) -> Vec<&AnyContender> {
        let mut supporting = Vec::new();
        voice.step(None, "planning ahead");
        self.planners.borrow_mut().plan(
            self.selection,
            task.problem,
            &task.coming,
            &task.contenders,
            self.device.info(),
        );
        for contender in &self.selection.contenders {
            let name = &contender.identity().name;
            if !task.contenders.contains(name) {
                continue;
            }
            voice.step(Some(name), "asking what it supports");
            match contender.supports(problem, self.device.info()) {
                Support::Yes => supporting.push(&**contender),
                Support::No(reason) => voice.outcome(name, Outcome::Unsupported(reason)),
            }
        }
        supporting
    }

    /// The gate, with the output of the reference contender if there is one that passes. The first
    /// process proves everything; those after it, that what they time is right.
    fn gate<'p>(
        &self,
        problem: &'p AnyProblem,
        plan: &Plan,
        process: usize,
        course: &Course,
        voice: &mut Voice,
    ) -> Result<Option<Gate<'p>>, Failure> {
        if !self.verify {
            return Ok(None);
        }
        let options = GateOptions {
            entropy: plan.entropy,
            ..GateOptions::new(plan.seed)
        };
        if process > 0 {
            return Ok(Some(Gate::new(problem, options.again())?));
        }
        let kinds = self.preset.map_or(usize::MAX, Preset::kinds);
        let mut gate = Gate::new(problem, GateOptions { kinds, ..options })?;
        if let Some(reference) = &self.selection.reference {
            if reference.supports(problem, self.device.info()) == Support::Yes {
                // Not a contender to measure: if it fails, nobody can be verified.
                let name = &reference.identity().name;
                voice.step(Some(name), "serving as the reference");
                let set = course.first();
                let mut bound = reference.bind(problem, set.buffers(), self.device.info())?;
                gate.examine_reference(set, &mut *bound)
                    .map_err(of_reference)?;
                gate.adopt_reference(set)?;
            } else {
                voice.step(Some(&reference.identity().name), "serving as the reference");
                let info = self.device.info();
                let mut pieces = problem.pieces();
                pieces.retain(|piece| reference.supports(&*piece.problem, info) == Support::Yes);
                let mut bind =
                    |piece: &AnyProblem, buffers: &[Buffer]| reference.bind(piece, buffers, info);
                match gate.adopt_pieces(course.first(), &pieces, &mut bind) {
                    // A problem that fills memory is checked by the sample alone.
                    Err(Failure::Device(DeviceError::OutOfMemory { .. })) => {}
                    adopted => adopted.map_err(of_reference)?,
                }
            }
        }
        Ok(Some(gate))
    }

    /// Binds one contender, and has the gate look at the order of its writes, if at all.
    fn admit<'c>(
        &self,
        problem: &AnyProblem,
        contender: &AnyContender,
        course: &Course<'c>,
        order: Option<&Gate>,
        voice: &mut Voice,
    ) -> Result<Lane<'c>, Failure> {
        let name = &contender.identity().name;
        voice.step(Some(name), "binding");
        let mut lane = match contender.has_own_buffers(self.device.info()) {
            true => Lane::on_own_course(contender, problem, course.another()?, self.plan.launch)?,
            false => {
                let lane = Lane::new(contender, problem, course, self.plan.launch);
                // It may have run already, to be captured. A lost device is found elsewhere.
                lane.inspect_err(|_| drop(course.reset()))?
            }
        };
        if let Some(gate) = order {
            voice.step(Some(name), "passing the gate");
            let own = lane.own_course();
            let set = own.as_deref().unwrap_or(course).first();
            gate.examine_order(set, &mut lane.first())?;
        }
        Ok(lane)
    }

    /// Puts contenders through the gate, if there is one, all of them on the same inputs before the next; those who
    /// pass.
    fn examine<'c, 'e>(
        &self,
        gate: Option<&Gate>,
        course: &Course<'c>,
        mut entrants: Vec<(Lane<'c>, Entrant<'e>)>,
        voice: &mut Voice,
    ) -> Result<Vec<(Lane<'c>, Entrant<'e>)>, DeviceLost> {
        let rounds = gate.map_or(0, Gate::rounds);
        // After the last one of these everybody has to rest.
        for round in 0..=rounds {
            let mut passed = Vec::new();
            for (mut lane, entrant) in entrants {
                voice.step(Some(&entrant.identity.name), "passing the gate");
                let own = lane.own_course();
                let set = own.as_deref().unwrap_or(course).first();
                let examined = match gate.filter(|_| round < rounds) {
                    Some(gate) => {
                        self.device.execute_in(round);
                        gate.examine_round(round, set, &mut lane.first())
                    }
                    None => gate::check_rests(self.device).map(|()| entrant.errors),
                };
                let identity = entrant.identity;
                match examined {
                    Ok(errors) => passed.push((lane, Entrant { identity, errors })),
                    Err(failure) => self.fail(&identity.name, &failure, voice)?,
                }
            }
            entrants = passed;
        }
        Ok(entrants)
    }

    /// Races the lanes; if one fails on the way, races again without it.
    fn race_all(
        &self,
        problem: &AnyProblem,
        mut plan: Plan,
        course: &Course,
        entrants: Vec<(Lane, Entrant)>,
        gate: Option<&Gate>,
        voice: &mut Voice,
    ) -> Result<(), DeviceLost> {
        let (mut lanes, mut entrants): (Vec<Lane>, Vec<Entrant>) = entrants.into_iter().unzip();
        while !lanes.is_empty() {
            let raced = self.race(course, &plan, &mut lanes, &entrants, gate, voice);
            let failed = match raced {
                Ok(timings) => {
                    // Some begin only once they are timed.
                    voice.step(None, "being judged");
                    let mut looks = (0..LOOKS_FOR_REST).map(|_| gate::check_rests(self.device));
                    if let Some(Err(failure)) = looks.find(Result::is_err) {
                        return self.fail_restless(lanes, &entrants, &failure, voice);
                    }
                    let measured = lanes.iter_mut().zip(entrants).zip(timings);
                    return self.conclude(problem, course, &plan, measured, gate, voice);
                }
                Err(failed) => failed,
            };
            let Some(culprit) = failed.lane else {
                let reason = format!("one of the contenders in this race {}", failed.failure);
                for entrant in &entrants {
                    voice.outcome(&entrant.identity.name, Outcome::Spoilt(reason.clone()));
                }
                return self.check_alive(&failed.failure);
            };
            self.fail(&entrants[culprit].identity.name, &failed.failure, voice)?;
            lanes.remove(culprit);
            entrants.remove(culprit);
            // The others have seen what the race that failed looked at.
            plan = plan.for_another("again");
        }
        Ok(())
    }

    /// Reports whose threads do not rest: they do once his work is dropped.
    fn fail_restless(
        &self,
        mut lanes: Vec<Lane>,
        entrants: &[Entrant],
        failure: &Failure,
        voice: &mut Voice,
    ) -> Result<(), DeviceLost> {
        while lanes.pop().is_some() {
            let mut looks = (0..LOOKS_FOR_REST).map(|_| gate::check_rests(self.device));
            if looks.all(|look| look.is_ok()) {
                let culprit = &entrants[lanes.len()];
                return self.fail(&culprit.identity.name, failure, voice);
            }
        }
        let reason = format!("one of the contenders in this race {failure}");
        for entrant in entrants {
            voice.outcome(&entrant.identity.name, Outcome::Spoilt(reason.clone()));
        }
        Err(DeviceLost)
    }

    fn race(
        &self,
        course: &Course,
        plan: &Plan,
        lanes: &mut [Lane],
        entrants: &[Entrant],
        gate: Option<&Gate>,
        voice: &mut Voice,
    ) -> Result<Vec<Timing>, LaneFailure> {
        let kinds: Vec<Kind> = entrants.iter().map(|each| each.identity.kind).collect();
        let named = |entrant: &Entrant| Some(&*entrant.identity.name) == self.baseline;
        let pairs = pairs_to_know(&kinds, entrants.iter().position(named));
        race(course, lanes, &pairs, plan, gate, &mut |lane, step| {
            let what = match step {
                Step::WarmUp => "warming up",
                Step::Refill => "getting fresh inputs",
                Step::Sample => "being timed",
                Step::Check => "being checked",
                Step::Trace => "being traced",
            };
            voice.step(Some(&entrants[lane].identity.name), what);
        })
    }

    /// Judges the times of a race. Nothing is reported until all are judged: if the process dies on the
    /// way, no sample of this race may be paired with one of the next.
    fn conclude<'l, 'c: 'l>(
        &self,
        problem: &AnyProblem,
        course: &Course,
        plan: &Plan,
        measured: impl Iterator<Item = ((&'l mut Lane<'c>, Entrant<'l>), Timing)>,
        gate: Option<&Gate>,
        voice: &mut Voice,
    ) -> Result<(), DeviceLost> {
        let (state, limits) = (self.device.state(), self.limits(problem));
        let measured: Vec<_> = measured.collect();
        let others = measured
            .iter()
            .filter(|((_, entrant), _)| entrant.identity.kind == Kind::Baseline);
        let fastest = others.min_by(|(_, a), (_, b)| a.median_us().total_cmp(&b.median_us()));
        let fastest = fastest.map(|((_, entrant), _)| entrant.identity.name.clone());
        let mut outcomes = Vec::new();
        for ((lane, Entrant { identity, errors }), timing) in measured {
            voice.step(Some(&identity.name), "being judged");
            let compared = identity.kind == Kind::Own || fastest.as_ref() == Some(&identity.name);
            let judged = validate(course, lane, &timing, plan, limits, gate);
            let judged = judged.and_then(|validity| {
                let wanted = |energy: &Energy| compared || !energy.limited_only;
                let Some(energy) = plan.energy.filter(wanted) else {
                    return Ok((validity, None));
                };
                voice.step(Some(&identity.name), "being metered");
                let energy = energy_j(course, lane, &timing, state.clock_max_mhz, energy)?;
                Ok((validity, energy))
            });
            match judged {
                Ok((validity, energy_j)) => {
                    let state = state.clone();
                    let measured = Measured {
                        errors,
                        verified: gate.is_some(),
                        also_right_on: gate.map(kinds).unwrap_or_default(),
                        reference: gate.map(|gate| gate.coverage().to_string()),
                        facts: lane.facts(),
                        timing,
                        validity,
                        energy_j,
                        state,
                    };
                    outcomes.push((identity, Outcome::Measured(Box::new(measured))));
                }
                Err(failure) => self.fail(&identity.name, &failure, voice)?,
            }
        }
        for (identity, outcome) in outcomes {
            voice.outcome(&identity.name, outcome);
        }
        voice.step(None, "freeing memory");
        Ok(())
    }

    fn limits(&self, problem: &AnyProblem) -> Limits {
        let l2_bytes = self.device.info().l2_bytes;
        Limits {
            floor_us: floor_us(&problem.cost(), self.plan.cache, l2_bytes, &self.roofs),
        }
    }

    /// Reports a contender's failure, and whether the device survived it.
    fn fail(&self, name: &str, failure: &Failure, voice: &mut Voice) -> Result<(), DeviceLost> {
        voice.outcome(name, Outcome::from(failure));
        self.check_alive(failure)
    }

    /// Reports that nobody could be measured because the harness itself failed.
    fn fail_all(
        &self,
        contenders: &[&AnyContender],
        failure: &Failure,
        voice: &mut Voice,
    ) -> Result<(), DeviceLost> {
        for contender in contenders {
            let name = &contender.identity().name;
            voice.outcome(name, Outcome::Error(failure.to_string()));
        }
        self.check_alive(failure)
    }

    /// A fault may reach us as a contender's error message; only the device knows whether it is lost.
    fn check_alive(&self, failure: &Failure) -> Result<(), DeviceLost> {
        match failure.device_is_lost() || self.device.synchronize().is_err() {
            true => Err(DeviceLost),
            false => Ok(()),
        }
    }
}
