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
    Problem, Tensors,
};
use numeric::DType;

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

impl<P: Problem, Op: 'static, E: Display + 'static> Ours<P, Op, E> {
    pub fn ours(&self) -> Box<dyn Contender<P>> {
        self.contender("ours", Kind::Own, Variant::Tuned, None)
    }

    /// The kernels that run on every GPU, if `ours` are different ones: gated with the others, timed on request.
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
                on_request: variant == Variant::Portable,
                ..Identity::in_tree(name, kind, timed)
            },
            DeviceKind::Cuda,
            move |problem, _device| match unsupported(problem) {
                Ok(()) => obstacle(problem, variant),
                Err(error) => Some(error.to_string()),
            },
            move |problem, tensors, _device| bind(&op(problem, tensors)?, variant, plan),
        )
    }
}

fn bind<Op, E: Display>(
    op: &Op,
    variant: Variant,
    plan: unsafe fn(&Op, Variant) -> Result<UniquePtr<Plan>, E>,
) -> Binding {
    let started = Instant::now();
    // SAFETY: the harness has allocated the buffers as the problem's tensors say.
    let plan = unsafe { plan(op, variant) }.map_err(ContenderError::new)?;
    let plan_us = started.elapsed().as_secs_f64() * 1e6;
    let facts = plan.facts().to_string();
    let mut facts: Facts = serde_json::from_str(&facts).map_err(ContenderError::new)?;
    // A plan that cuts work on the host says what that took; others only choose and prepare.
    let plan_us = facts
        .remove("plan_us")
        .and_then(|own| own.as_f64())
        .unwrap_or(plan_us);
    facts.insert(
        "plan_us".to_owned(),
        ((plan_us * 10.0).round() / 10.0).into(),
    );
    Ok(bound(facts, move |stream| {
        // SAFETY: the harness keeps the buffers until its stream has done the work.
        unsafe { plan.enqueue(stream) }
    }))
}

/// The kernels' name for a type, if they have it.
pub fn dtype(dtype: DType) -> Result<Dtype, ContenderError> {
    Dtype::named(&dtype.to_string()).ok_or_else(|| ContenderError::new(format!("no {dtype}")))
}
