//! Our CUDA kernels as contenders: `ours`, and the plain kernel that is the gate's full reference.
//! A plan is made when buffers are bound; to enqueue it is all that is timed.
#![cfg(feature = "cuda")]

use std::fmt::Display;
use std::time::Instant;

use bridge::Dtype;
pub use bridge::{Plan, UniquePtr, Variant};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use numeric::DType;

/// Where the tensor of a name is: 0 where the problem has none, or buffers are not there yet.
pub type Address<'a> = &'a dyn Fn(&str) -> usize;

/// A family of kernels, by the functions of its bridge.
pub struct Ours<P, Op, E> {
    /// What the time includes.
    pub timed: &'static str,
    /// Why the contender rather leaves a problem alone that its kernels could do.
    pub obstacle: fn(&P, Variant) -> Option<String>,
    /// The problem as the bridge takes it.
    pub op: fn(&P, Address) -> Result<Op, ContenderError>,
    /// What the kernels do not serve; addresses do not matter.
    pub check: fn(&Op, Variant) -> Result<(), E>,
    /// Addresses must be those of the tensors.
    pub plan: unsafe fn(&Op, Variant) -> Result<UniquePtr<Plan>, E>,
}

/// What a bridge says it would run.
pub type Choice<Op, E> = fn(&Op, Variant) -> Result<String, E>;

struct OneOf<P, Op, E> {
    identity: Identity,
    variant: Variant,
    family: Ours<P, Op, E>,
    /// Of a contender that only runs where its choice is another than that of `ours`.
    choice: Option<Choice<Op, E>>,
}

impl<P: Problem, Op: 'static, E: Display + 'static> Ours<P, Op, E> {
    pub fn ours(&self) -> Box<dyn Contender<P>> {
        self.contender("ours", Kind::Own, Variant::Tuned, None)
    }

    /// The kernels that every GPU has, where `ours` are others.
    pub fn portable(&self, choice: Choice<Op, E>) -> Box<dyn Contender<P>> {
        self.contender("ours_portable", Kind::Own, Variant::Portable, Some(choice))
    }

    pub fn plain(&self) -> Box<dyn Contender<P>> {
        self.contender("plain_fp32", Kind::Reference, Variant::Plain, None)
    }

    fn contender(
        &self,
        name: &str,
        kind: Kind,
        variant: Variant,
        choice: Option<Choice<Op, E>>,
    ) -> Box<dyn Contender<P>> {
        Box::new(OneOf {
            identity: Identity::in_tree(name, kind, self.timed),
            variant,
            family: Ours { ..*self },
            choice,
        })
    }
}

impl<P: Problem, Op, E: Display> OneOf<P, Op, E> {
    fn check(&self, problem: &P) -> Result<(), ContenderError> {
        let op = (self.family.op)(problem, &|_| 0)?;
        (self.family.check)(&op, self.variant).map_err(ContenderError::new)?;
        let Some(choice) = self.choice else {
            return Ok(());
        };
        let choice = |variant| choice(&op, variant).map_err(ContenderError::new);
        if choice(self.variant)? == choice(Variant::Tuned)? {
            return Err(ContenderError::new("the same kernel as 'ours' here"));
        }
        Ok(())
    }
}

impl<P: Problem, Op, E: Display> Contender<P> for OneOf<P, Op, E> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        match self.check(problem) {
            Ok(()) => {
                (self.family.obstacle)(problem, self.variant).map_or(Support::Yes, Support::No)
            }
            Err(error) => Support::No(error.to_string()),
        }
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let address = |name: &str| {
            let named = problem
                .tensors()
                .iter()
                .zip(buffers)
                .find(|(spec, _)| spec.name == name);
            named.map_or(0, |(_, buffer)| buffer.address)
        };
        let op = (self.family.op)(problem, &address)?;
        let started = Instant::now();
        // SAFETY: the harness has allocated the buffers as the problem's tensors say.
        let plan = unsafe { (self.family.plan)(&op, self.variant) }.map_err(ContenderError::new)?;
        let plan_us = started.elapsed().as_secs_f64() * 1e6;
        Ok(Box::new(Planned { plan, plan_us }))
    }
}

struct Planned {
    plan: UniquePtr<Plan>,
    /// With the allocation of its memory, which a server does once.
    plan_us: f64,
}

impl Bound for Planned {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        // SAFETY: the harness keeps the buffers until its stream has done the work.
        unsafe { self.plan.enqueue(stream) }.map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let facts = self.plan.facts().to_string();
        let mut facts: Facts =
            serde_json::from_str(&facts).expect("a plan's facts are a JSON object");
        facts.insert("plan_us".to_owned(), self.plan_us.round().into());
        facts
    }
}

/// The kernels' name of a type, where they have it.
pub fn dtype(dtype: DType) -> Result<Dtype, ContenderError> {
    Dtype::named(&dtype.to_string()).ok_or_else(|| ContenderError::new(format!("no {dtype}")))
}
