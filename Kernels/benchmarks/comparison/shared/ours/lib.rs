//! Our CUDA kernels as contenders: `ours`, the portable kernels if `ours` are different ones, and
//! the plain kernel, which is the gate's full reference. A plan is made when tensors are bound;
//! only enqueueing it is timed.

pub mod paged;

use std::fmt::Display;
use std::time::Instant;

use bridge::Dtype;
pub use bridge::{Plan, UniquePtr, Variant};
use contender::{
    bound, contender, Binding, Contender, ContenderError, DeviceKind, Facts, Identity, Kind,
    Problem, Tensors, PLAN_US,
};
use numeric::DType;

const FIRST: &str = "ours_first";

/// A family of kernels, by the functions of its bridge.
pub struct Ours<P, Op, E> {
    /// What the time includes.
    pub timed: &'static str,
    /// Why a contender skips a problem that its kernels could solve.
    pub obstacle: fn(&P, Variant) -> Option<String>,
    /// The problem in the bridge's terms.
    pub op: fn(&P, &Tensors) -> Result<Op, ContenderError>,
    /// What the kernels do not support; addresses are ignored.
    pub check: fn(&Op, Variant) -> Result<(), E>,
    /// Addresses must be of the problem's tensors.
    pub plan: unsafe fn(&Op, Variant) -> Result<UniquePtr<Plan>, E>,
}

/// What a bridge says it would run.
pub type Choice<Op, E> = fn(&Op, Variant) -> Result<String, E>;
/// A plan with the fastest of several kernels on these tensors.
pub type Measured<Op, E> = unsafe fn(&Op) -> Result<UniquePtr<Plan>, E>;

impl<P: Problem, Op: 'static, E: Display + 'static> Ours<P, Op, E> {
    pub fn ours(&self) -> Box<dyn Contender<P>> {
        self.contender("ours", Kind::Own, Variant::Tuned, None, None)
    }

    /// The same where kernels are tried before one is chosen; without a clock it is the one that is expected to be
    /// the fastest.
    pub fn ours_measured(&self, measured: Measured<Op, E>) -> Box<dyn Contender<P>> {
        self.contender("ours", Kind::Own, Variant::Tuned, None, Some(measured))
    }

    /// The kernel that is expected to be the fastest, untried: timed on request.
    pub fn first(&self) -> Box<dyn Contender<P>> {
        self.contender(FIRST, Kind::Own, Variant::Tuned, None, None)
    }

    /// The kernels that run on every GPU, if `ours` are different ones: gated with the others, timed on request.
    pub fn portable(&self, choice: Choice<Op, E>) -> Box<dyn Contender<P>> {
        let portable = Variant::Portable;
        self.contender("ours_portable", Kind::Own, portable, Some(choice), None)
    }

    pub fn plain(&self) -> Box<dyn Contender<P>> {
        self.contender("plain_fp32", Kind::Reference, Variant::Plain, None, None)
    }

    fn contender(
        &self,
        name: &str,
        kind: Kind,
        variant: Variant,
        choice: Option<Choice<Op, E>>,
        measured: Option<Measured<Op, E>>,
    ) -> Box<dyn Contender<P>> {
        let Ours {
            timed,
            obstacle,
            op,
            check,
            plan,
        } = *self;
        let unsupported = move |problem: &P| -> Result<(), ContenderError> {
            let op = op(problem, &Tensors::unbound(problem))?;
            check(&op, variant).map_err(ContenderError::new)?;
            if let Some(choice) = choice {
                let choice = |variant| choice(&op, variant).map_err(ContenderError::new);
                if choice(variant)? == choice(Variant::Tuned)? {
                    return Err(ContenderError::new("the same kernel as 'ours' here"));
                }
            }
            Ok(())
        };
        contender(
            Identity {
                on_request: variant == Variant::Portable || name == FIRST,
                ..Identity::in_tree(name, kind, timed)
            },
            DeviceKind::Cuda,
            move |problem, _device| match unsupported(problem) {
                Ok(()) => obstacle(problem, variant),
                Err(error) => Some(error.to_string()),
            },
            move |problem, tensors, device| {
                let op = op(problem, tensors)?;
                let has_clock = device.kind == DeviceKind::Cuda && !device.emulated;
                // SAFETY: the harness has allocated the buffers as the problem's tensors say.
                match measured.filter(|_| has_clock) {
                    Some(measured) => bind(|| unsafe { measured(&op) }),
                    None => bind(|| unsafe { plan(&op, variant) }),
                }
            },
        )
    }
}

fn bind<E: Display>(plan: impl FnOnce() -> Result<UniquePtr<Plan>, E>) -> Binding {
    let started = Instant::now();
    let plan = plan().map_err(ContenderError::new)?;
    let plan_us = started.elapsed().as_secs_f64() * 1e6;
    let facts = plan.facts().to_string();
    let mut facts: Facts = serde_json::from_str(&facts).map_err(ContenderError::new)?;
    // A plan that cuts work on the host says what that took; others only choose and prepare.
    let plan_us = facts
        .remove(PLAN_US)
        .and_then(|own| own.as_f64())
        .unwrap_or(plan_us);
    facts.insert(PLAN_US.to_owned(), ((plan_us * 10.0).round() / 10.0).into());
    Ok(bound(facts, move |stream| {
        // SAFETY: the harness keeps the buffers until its stream has done the work.
        unsafe { plan.enqueue(stream) }
    }))
}

/// The kernels' name for a type, if they have it.
pub fn dtype(dtype: DType) -> Result<Dtype, ContenderError> {
    Dtype::named(&dtype.to_string()).ok_or_else(|| ContenderError::new(format!("no {dtype}")))
}
