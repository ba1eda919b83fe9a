//! The honest and the faulty contenders.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};

use crate::backend::{self, Backend};
use crate::fault::GATE_CALLS;
use crate::sly::Notes;
use crate::{outside, sly, Fault, Scaled};

const ALL: [(&str, Kind, Fault); 50] = [
    ("honest", Kind::Own, Fault::None),
    ("baseline", Kind::Baseline, Fault::None),
    ("reference", Kind::Reference, Fault::None),
    ("wrong_result", Kind::Own, Fault::WrongResult),
    ("not_a_number", Kind::Own, Fault::NotANumber),
    ("unwritten_tail", Kind::Own, Fault::UnwrittenTail),
    ("out_of_bounds", Kind::Own, Fault::OutOfBounds),
    ("input_mutation", Kind::Own, Fault::InputMutation),
    ("cached_output", Kind::Own, Fault::CachedOutput),
    ("other_stream", Kind::Own, Fault::OtherStream),
    ("idle_when_timed", Kind::Own, Fault::IdleWhenTimed),
    ("abort_when_timed", Kind::Own, Fault::AbortWhenTimed),
    ("abort_later", Kind::Own, Fault::AbortLater),
    ("illegal_address", Kind::Own, Fault::IllegalAddress),
    ("infinite_loop", Kind::Own, Fault::InfiniteLoop),
    ("exit", Kind::Own, Fault::Exit),
    ("abort", Kind::Own, Fault::Abort),
    ("allocation_failure", Kind::Own, Fault::AllocationFailure),
    ("planned", Kind::Own, Fault::Planned),
    ("abort_planning", Kind::Own, Fault::AbortPlanning),
    ("unsupported", Kind::Own, Fault::Unsupported),
    ("one_percent_more", Kind::Own, Fault::OnePercentMore),
    ("slow", Kind::Own, Fault::Slow),
    ("senses_nan", Kind::Own, Fault::SensesNan),
    ("senses_garbage", Kind::Own, Fault::SensesGarbage),
    ("memoises", Kind::Own, Fault::Memoises),
    ("memoises_half", Kind::Own, Fault::MemoisesHalf),
    ("skips_repeats", Kind::Own, Fault::SkipsRepeats),
    ("previous_answer", Kind::Own, Fault::PreviousAnswer),
    ("precomputed", Kind::Own, Fault::Precomputed),
    ("every_third_call", Kind::Own, Fault::EveryThirdCall),
    ("only_first_set", Kind::Own, Fault::OnlyFirstSet),
    ("right_ends", Kind::Own, Fault::RightEnds),
    ("low_precision_tail", Kind::Own, Fault::LowPrecisionTail),
    ("cheaper_when_timed", Kind::Own, Fault::CheaperWhenTimed),
    ("half_when_timed", Kind::Own, Fault::HalfWhenTimed),
    ("side_stream", Kind::Own, Fault::SideStream),
    ("early_launch", Kind::Own, Fault::EarlyLaunch),
    ("early_when_timed", Kind::Own, Fault::EarlyWhenTimed),
    ("host_work", Kind::Own, Fault::HostWork),
    (
        "memoises_until_judged",
        Kind::Own,
        Fault::MemoisesUntilJudged,
    ),
    ("idle_when_judged", Kind::Own, Fault::IdleWhenJudged),
    ("memoises_at_times", Kind::Own, Fault::MemoisesAtTimes),
    ("copies_others", Kind::Own, Fault::CopiesOthers),
    ("finishes_late", Kind::Own, Fault::FinishesLate),
    ("slacks_elsewhere", Kind::Own, Fault::SlacksElsewhere),
    ("spins_on", Kind::Own, Fault::SpinsOn),
    ("needs_rest", Kind::Own, Fault::NeedsRest),
    ("pins_inputs", Kind::Own, Fault::PinsInputs),
    ("pins_nothing", Kind::Own, Fault::PinsNothing),
];

/// Longer than it is warmed up, and shorter than a race.
const ABORT_AFTER: Duration = Duration::from_millis(60);

/// All contenders, honest ones first.
pub fn contenders() -> Vec<Box<dyn Contender<Scaled>>> {
    ALL.iter()
        .map(|(name, kind, fault)| -> Box<dyn Contender<Scaled>> {
            Box::new(FaultyContender::new(name, *kind, *fault))
        })
        .collect()
}

pub struct FaultyContender {
    identity: Identity,
    fault: Fault,
    /// Over all buffer sets.
    calls: Rc<Cell<usize>>,
    /// Sets of buffers that it has been bound to.
    sets: Cell<usize>,
    /// Plans by name.
    plans: RefCell<BTreeMap<String, String>>,
    notes: Rc<RefCell<Notes>>,
}

impl FaultyContender {
    pub fn new(name: &str, kind: Kind, fault: Fault) -> Self {
        let identity = Identity {
            version: "test".into(),
            ..Identity::in_tree(name, kind, "one pass over x")
        };
        Self {
            identity,
            fault,
            calls: Rc::default(),
            sets: Cell::default(),
            plans: RefCell::default(),
            notes: Rc::default(),
        }
    }
}

impl Contender<Scaled> for FaultyContender {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, _problem: &Scaled, device: &DeviceInfo) -> Support {
        let obstacle = match self.fault {
            Fault::Unsupported => Some("it never does".into()),
            fault if outside::is_cuda_only(fault) => device.obstacle_to(DeviceKind::Cuda),
            fault if sly::is_sly(fault) || fault == Fault::EarlyWhenTimed => {
                device.obstacle_to(DeviceKind::Cpu)
            }
            _ => None,
        };
        obstacle.map_or(Support::Yes, Support::No)
    }

    fn plan_name(&self, problem: &Scaled, _device: &DeviceInfo) -> Option<String> {
        let plans = matches!(self.fault, Fault::Planned | Fault::AbortPlanning);
        plans.then(|| problem.workload().name.clone())
    }

    fn write_plan(&self, problem: &Scaled) -> Option<String> {
        if self.fault == Fault::AbortPlanning {
            std::process::abort();
        }
        let (name, process) = (&problem.workload().name, std::process::id());
        Some(format!("{name} by {process}"))
    }

    fn take_plan(&self, problem: &Scaled, plan: &str) {
        let name = problem.workload().name.clone();
        self.plans.borrow_mut().insert(name, plan.to_owned());
    }

    fn bind(
        &self,
        problem: &Scaled,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        if let Some(bound) = outside::bind(self.fault, problem, buffers, device) {
            return bound;
        }
        if let Some(bound) = sly::bind(self.fault, problem, buffers, device, &self.notes) {
            return bound;
        }
        let mut backend: Box<dyn Backend> = match device.kind {
            DeviceKind::Cpu => backend::cpu(problem, buffers),
            DeviceKind::Cuda | DeviceKind::Ptx => backend::cuda(problem, buffers)?,
        };
        if self.fault == Fault::AllocationFailure {
            backend.allocate(2 * device.memory_bytes as usize)?;
        }
        if self.fault == Fault::Precomputed {
            backend.compute(Fault::None, Stream(0))?;
            backend.remember(Stream(0))?;
        }
        let set = self.sets.replace(self.sets.get() + 1);
        Ok(Box::new(FaultyBound {
            fault: self.fault,
            set,
            backend,
            calls: self.calls.clone(),
            first: true,
            plan: self.plans.borrow().get(&problem.workload().name).cloned(),
        }))
    }
}

struct FaultyBound {
    fault: Fault,
    set: usize,
    backend: Box<dyn Backend>,
    calls: Rc<Cell<usize>>,
    first: bool,
    plan: Option<String>,
}

impl Bound for FaultyBound {
    fn facts(&self) -> Facts {
        let plan = self.plan.iter();
        plan.map(|plan| ("plan".to_owned(), plan.clone().into()))
            .collect()
    }

    fn enqueue(&mut self, stream: Stream) -> Result<(), ContenderError> {
        self.calls.set(self.calls.get() + 1);
        let timed = self.calls.get() > GATE_CALLS;
        let first = std::mem::replace(&mut self.first, false);
        match self.fault {
            Fault::Exit => std::process::exit(0),
            Fault::Abort => std::process::abort(),
            Fault::AbortWhenTimed if timed => std::process::abort(),
            Fault::AbortLater => {
                if self.calls.get() == GATE_CALLS + 1 {
                    thread::spawn(|| {
                        thread::sleep(ABORT_AFTER);
                        std::process::abort();
                    });
                }
                self.backend.compute(Fault::None, stream)
            }
            Fault::IdleWhenTimed if timed => Ok(()),
            Fault::CachedOutput if !first => self.backend.replay(stream),
            Fault::CachedOutput => {
                self.backend.compute(Fault::None, stream)?;
                self.backend.remember(stream)
            }
            Fault::Precomputed => self.backend.replay(stream),
            Fault::EveryThirdCall if timed && !self.calls.get().is_multiple_of(3) => Ok(()),
            Fault::OnlyFirstSet if self.set > 0 => Ok(()),
            Fault::CheaperWhenTimed if timed => {
                self.backend.compute(Fault::LowPrecisionTail, stream)
            }
            Fault::HalfWhenTimed if !timed => self.backend.compute(Fault::None, stream),
            Fault::Memoises | Fault::MemoisesHalf | Fault::SkipsRepeats => {
                self.backend.memoise(self.fault, stream)
            }
            Fault::PreviousAnswer => self.backend.lag(stream),
            fault => self.backend.compute(fault, stream),
        }
    }
}
