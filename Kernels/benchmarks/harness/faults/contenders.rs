//! The honest and the faulty contenders.

use std::cell::Cell;
use std::rc::Rc;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};

use crate::backend::{self, Backend};
use crate::Scaled;

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
    /// The first answer is repeated whatever the inputs are.
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
    /// Says that it cannot do the problem: no fault.
    Unsupported,
    /// Right, but does one hundredth of the work twice: no fault, a known slow-down.
    OnePercentMore,
}

/// More calls than the gate makes of a contender before it is timed.
const GATE_CALLS: usize = 6;

const ALL: [(&str, Kind, Fault); 19] = [
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
    ("unsupported", Kind::Own, Fault::Unsupported),
    ("one_percent_more", Kind::Own, Fault::OnePercentMore),
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
}

impl FaultyContender {
    pub fn new(name: &str, kind: Kind, fault: Fault) -> Self {
        let identity = Identity {
            name: name.into(),
            kind,
            version: "test".into(),
            artifact_sha256: None,
            timed_region: "one pass over x".into(),
        };
        Self {
            identity,
            fault,
            calls: Rc::default(),
        }
    }
}

impl Contender<Scaled> for FaultyContender {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, _problem: &Scaled, _device: &DeviceInfo) -> Support {
        match self.fault {
            Fault::Unsupported => Support::No("it never does".into()),
            _ => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &Scaled,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let backend: Box<dyn Backend> = match device.kind {
            DeviceKind::Cpu => backend::cpu(problem, buffers),
            DeviceKind::Cuda => backend::cuda(problem, buffers)?,
        };
        if self.fault == Fault::AllocationFailure {
            backend.allocate(2 * device.memory_bytes as usize)?;
        }
        Ok(Box::new(FaultyBound {
            fault: self.fault,
            backend,
            calls: self.calls.clone(),
            first: true,
        }))
    }
}

struct FaultyBound {
    fault: Fault,
    backend: Box<dyn Backend>,
    calls: Rc<Cell<usize>>,
    first: bool,
}

impl Bound for FaultyBound {
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
            fault => self.backend.compute(fault, stream),
        }
    }
}
