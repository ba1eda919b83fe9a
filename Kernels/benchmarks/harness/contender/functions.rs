//! A contender made of functions: what it cannot do, and how it is bound.

use std::fmt::Display;

use crate::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Pinned,
    Problem, Stream, Support, Tensors,
};

/// What binding gives.
pub type Binding = Result<Box<dyn Bound>, ContenderError>;

type Missing<P> = Box<dyn Fn(&P, &str) -> Option<Vec<String>>>;

/// Releases of a library that its recipe builds, and the contender of one of them.
pub struct Releases<P: Problem> {
    pub pinned: Pinned,
    pub at: fn(&str) -> Option<Box<dyn Contender<P>>>,
}

struct Functions<P: Problem, O, B> {
    identity: Identity,
    device: DeviceKind,
    obstacle: O,
    missing: Missing<P>,
    bind: B,
    releases: Option<Releases<P>>,
}

/// A contender on one kind of device. `obstacle` says why it does not take a problem, if it does not;
/// `bind` chooses the kernel and resolves the tensors' names.
pub fn contender<P, O, B>(
    identity: Identity,
    device: DeviceKind,
    obstacle: O,
    bind: B,
) -> Box<dyn Contender<P>>
where
    P: Problem,
    O: Fn(&P, &DeviceInfo) -> Option<String> + 'static,
    B: Fn(&P, &Tensors, &DeviceInfo) -> Binding + 'static,
{
    buildable(identity, device, obstacle, |_, _| None, bind)
}

/// The same, with kernels that can be built on demand; see [`Contender::missing`].
pub fn buildable<P, O, B>(
    identity: Identity,
    device: DeviceKind,
    obstacle: O,
    missing: impl Fn(&P, &str) -> Option<Vec<String>> + 'static,
    bind: B,
) -> Box<dyn Contender<P>>
where
    P: Problem,
    O: Fn(&P, &DeviceInfo) -> Option<String> + 'static,
    B: Fn(&P, &Tensors, &DeviceInfo) -> Binding + 'static,
{
    released(identity, device, obstacle, missing, bind, None)
}

/// The same, of which other releases can be built too.
pub fn released<P, O, B>(
    identity: Identity,
    device: DeviceKind,
    obstacle: O,
    missing: impl Fn(&P, &str) -> Option<Vec<String>> + 'static,
    bind: B,
    releases: Option<Releases<P>>,
) -> Box<dyn Contender<P>>
where
    P: Problem,
    O: Fn(&P, &DeviceInfo) -> Option<String> + 'static,
    B: Fn(&P, &Tensors, &DeviceInfo) -> Binding + 'static,
{
    Box::new(Functions {
        identity,
        device,
        obstacle,
        missing: Box::new(missing),
        bind,
        releases,
    })
}

impl<P, O, B> Contender<P> for Functions<P, O, B>
where
    P: Problem,
    O: Fn(&P, &DeviceInfo) -> Option<String>,
    B: Fn(&P, &Tensors, &DeviceInfo) -> Binding,
{
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        let obstacle = device.obstacle_to(self.device);
        let obstacle = obstacle.or_else(|| (self.obstacle)(problem, device));
        obstacle.map_or(Support::Yes, Support::No)
    }

    fn missing(&self, problem: &P, arch: &str) -> Option<Vec<String>> {
        (self.missing)(problem, arch)
    }

    fn releases(&self) -> Option<Pinned> {
        let releases = self.releases.as_ref();
        releases.map(|releases| releases.pinned.clone())
    }

    fn at(&self, release: &str) -> Option<Box<dyn Contender<P>>> {
        (self.releases.as_ref()?.at)(release)
    }

    fn bind(&self, problem: &P, buffers: &[Buffer], device: &DeviceInfo) -> Binding {
        (self.bind)(problem, &Tensors::new(problem, buffers)?, device)
    }
}

/// Work that is ready to be enqueued on a `CUstream`, or run on the CPU.
pub fn bound<E: Display>(
    facts: Facts,
    enqueue: impl FnMut(usize) -> Result<(), E> + 'static,
) -> Box<dyn Bound> {
    Box::new(Ready { facts, enqueue })
}

struct Ready<F> {
    facts: Facts,
    enqueue: F,
}

impl<E: Display, F: FnMut(usize) -> Result<(), E>> Bound for Ready<F> {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        (self.enqueue)(stream).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }
}
