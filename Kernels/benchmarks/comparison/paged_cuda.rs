//! What our CUDA contenders over a paged cache share: a kernel whose plan the host makes from the
//! lengths, and the plain one that serves as the gate's full reference.

use std::time::Instant;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use serde_json::Value;

/// A problem over a paged cache, as our kernels take it.
pub trait Paged: Problem {
    /// What the time of the planned kernel includes.
    const TIMED_REGION: &'static str;

    /// Why the kernels do not serve the shape, if they do not; the plan has the last word.
    fn unsupported(&self) -> Option<String>;

    fn plan(&self, buffers: &[Buffer]) -> Result<Planned, ContenderError>;

    /// The plain kernel, for a table that may be read through.
    fn plain(&self, buffers: &[Buffer]) -> Result<Enqueue, ContenderError>;
}

/// A plan on the device.
pub struct Planned {
    pub description: String,
    pub workspace_bytes: usize,
    pub enqueue: Enqueue,
}

/// Enqueues a kernel on a stream.
pub type Enqueue = Box<dyn Fn(usize) -> Result<(), ContenderError>>;

/// `ours` and `plain_fp32`.
pub fn contenders<P: Paged>() -> Vec<Box<dyn Contender<P>>> {
    vec![
        Box::new(Ours(Identity::in_tree("ours", Kind::Own, P::TIMED_REGION))),
        Box::new(Plain(Identity::in_tree(
            "plain_fp32",
            Kind::Reference,
            "one kernel",
        ))),
    ]
}

pub fn supports<P: Paged>(problem: &P, device: &DeviceInfo) -> Support {
    if device.kind != DeviceKind::Cuda {
        return Support::No("runs on CUDA only".to_owned());
    }
    problem.unsupported().map_or(Support::Yes, Support::No)
}

struct Ours(Identity);

impl<P: Paged> Contender<P> for Ours {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        supports(problem, device)
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        bind_planned(|| problem.plan(buffers))
    }
}

/// Plans, and keeps how long that took.
pub fn bind_planned(
    plan: impl FnOnce() -> Result<Planned, ContenderError>,
) -> Result<Box<dyn Bound>, ContenderError> {
    let started = Instant::now();
    let planned = plan()?;
    let plan_us = started.elapsed().as_secs_f64() * 1e6;
    Ok(Box::new(BoundOurs { planned, plan_us }))
}

struct BoundOurs {
    planned: Planned,
    plan_us: f64,
}

impl Bound for BoundOurs {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        (self.planned.enqueue)(stream)
    }

    fn facts(&self) -> Facts {
        Facts::from([
            (
                "plan".to_owned(),
                Value::from(self.planned.description.clone()),
            ),
            // With the allocation of its memory, which a server does once.
            ("plan_us".to_owned(), Value::from(self.plan_us.round())),
            (
                "workspace_bytes".to_owned(),
                Value::from(self.planned.workspace_bytes),
            ),
        ])
    }
}

struct Plain(Identity);

impl<P: Paged> Contender<P> for Plain {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        supports(problem, device)
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundPlain(problem.plain(buffers)?)))
    }
}

struct BoundPlain(Enqueue);

impl Bound for BoundPlain {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.0(stream)
    }
}
