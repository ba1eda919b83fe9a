//! Our CUDA kernels as contenders: `ours`, and the plain kernel that is the gate's full reference.
//! A plan is made when buffers are bound; to enqueue it is all that is timed.
#![cfg(feature = "cuda")]

use std::fmt::Display;

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

struct OneOf<P, Op, E> {
    identity: Identity,
    variant: Variant,
    family: Ours<P, Op, E>,
}

impl<P: Problem, Op: 'static, E: Display + 'static> Ours<P, Op, E> {
    pub fn ours(&self) -> Box<dyn Contender<P>> {
        self.contender("ours", Kind::Own, Variant::Tuned)
    }

    pub fn plain(&self) -> Box<dyn Contender<P>> {
        self.contender("plain_fp32", Kind::Reference, Variant::Plain)
    }

    fn contender(&self, name: &str, kind: Kind, variant: Variant) -> Box<dyn Contender<P>> {
        Box::new(OneOf {
            identity: Identity::in_tree(name, kind, self.timed),
            variant,
            family: Ours { ..*self },
        })
    }
}

impl<P: Problem, Op, E: Display> OneOf<P, Op, E> {
    fn check(&self, problem: &P) -> Result<(), ContenderError> {
        let op = (self.family.op)(problem, &|_| 0)?;
        (self.family.check)(&op, self.variant).map_err(ContenderError::new)
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
        // SAFETY: the harness has allocated the buffers as the problem's tensors say.
        let plan = unsafe { (self.family.plan)(&op, self.variant) }.map_err(ContenderError::new)?;
        Ok(Box::new(Planned(plan)))
    }
}

struct Planned(UniquePtr<Plan>);

impl Bound for Planned {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        // SAFETY: the harness keeps the buffers until its stream has done the work.
        unsafe { self.0.enqueue(stream) }.map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let facts = self.0.facts().to_string();
        serde_json::from_str(&facts).expect("a plan's facts are a JSON object")
    }
}

/// The kernels' name of a type, where they have it.
pub fn dtype(dtype: DType) -> Result<Dtype, ContenderError> {
    Dtype::named(&dtype.to_string()).ok_or_else(|| ContenderError::new(format!("no {dtype}")))
}
