//! The honest and the faulty contenders.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};

use crate::backend::{self, Backend};
use crate::sly::Notes;
use crate::{outside, sly, Scaled};

/// What a contender does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// One element in the last row is off.
    WrongResult,
    /// One element is NaN.
    NotANumber,
    /// The last row is never written.
    UnwrittenTail,
    /// One element after the end of the output is written.
    OutOfBounds,
    /// An input is changed.
    InputMutation,
    /// The first answer is repeated regardless of the inputs.
    CachedOutput,
    /// The output is written on another stream, or by a thread that outlives the call.
    OtherStream,
    /// Right in the gate, idle when timed.
    IdleWhenTimed,
    /// Right in the gate, ends the process when timed.
    AbortWhenTimed,
    IllegalAddress,
    InfiniteLoop,
    Exit,
    Abort,
    AllocationFailure,
    /// Has another process plan and reports the result: not a fault.
    Planned,
    /// The same, but the other process dies: costs no row.
    AbortPlanning,
    /// Says it does not support the problem: not a fault.
    Unsupported,
    /// Right, and does much work for it: not a fault, but what those below pretend to do.
    Slow,
    /// Idle unless the output holds NaN.
    SensesNan,
    /// Idle if the output holds NaN.
    SensesGarbage,
    /// Slow on inputs it has not seen, for the others it has kept the answers.
    Memoises,
    /// The same for the second half of the output; the first is computed.
    MemoisesHalf,
    /// Keeps the last answer, and repeats it while the inputs stay the same.
    SkipsRepeats,
    /// Answers the inputs of the call before.
    PreviousAnswer,
    /// Computes the answer before it is called, when it is bound.
    Precomputed,
    /// Right in the gate, works in every third call only when timed.
    EveryThirdCall,
    /// Idle on every set of buffers but the first.
    OnlyFirstSet,
    /// Right in the first and the last row, zero in all others.
    RightEnds,
    /// The second half of the rows is rounded to bf16.
    LowPrecisionTail,
    /// Right in the gate, rounds when timed.
    CheaperWhenTimed,
    /// Right in the gate, writes half of the output when timed.
    HalfWhenTimed,
    /// Computes into scratch memory on a stream of its own while the given one is held, which then only
    /// copies the answer.
    SideStream,
    /// The same, but the call waits until the answer is there; on the CPU a thread computes between
    /// calls.
    EarlyLaunch,
    /// The same on the CPU, but its thread starts when it is timed.
    EarlyWhenTimed,
    /// Works for long on the host before it launches.
    HostWork,
    /// Keeps answers, until inputs are new so often that somebody must be judging it.
    MemoisesUntilJudged,
    /// The same, but then writes nothing to inputs that are new.
    IdleWhenJudged,
    /// Keeps answers, but repeats them in fewer than half of its calls.
    MemoisesAtTimes,
    /// Keeps answers, and takes those that it does not have from where somebody else has written them.
    CopiesOthers,
    /// Has a thread write half of the output once the call has returned.
    FinishesLate,
    /// Works only if the cache has been flushed. Buffers as small as the suite's always are.
    SensesFlush,
    /// Works only if its output is gone, as it is before every sample that is not a block.
    IdleIfDone,
    /// Asks the cache to keep its inputs: not a fault, but its cold cache must be cold.
    PinsInputs,
    /// The same kernel without asking.
    PinsNothing,
    /// Right, but does one hundredth of the work twice: not a fault but a known slow-down.
    OnePercentMore,
}

/// More calls than the gate makes before a contender is timed.
pub(crate) const GATE_CALLS: usize = 6;

const ALL: [(&str, Kind, Fault); 46] = [
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
    ("pins_inputs", Kind::Own, Fault::PinsInputs),
    ("pins_nothing", Kind::Own, Fault::PinsNothing),
];

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
