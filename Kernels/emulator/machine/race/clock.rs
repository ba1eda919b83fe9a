//! What a thread knows of the others: vector clocks whose entries are warps, or work beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::op::LANES;
use crate::warp::lanes;

/// How far the lanes of one agent are known.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    All(u32),
    Each(Box<[u32; LANES]>),
}

impl Known {
    fn covers(&self, mask: u32, epoch: u32) -> bool {
        match self {
            Self::All(known) => *known >= epoch,
            Self::Each(known) => lanes(mask).all(|lane| known[lane as usize] >= epoch),
        }
    }

    fn each(&self) -> [u32; LANES] {
        match self {
            Self::All(known) => [*known; LANES],
            Self::Each(known) => **known,
        }
    }

    fn set(&mut self, each: [u32; LANES]) {
        *self = if each.iter().all(|known| *known == each[0]) {
            Self::All(each[0])
        } else {
            Self::Each(Box::new(each))
        };
    }

    fn join(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::All(a), Self::All(b)) => *a = (*a).max(*b),
            _ => {
                let (a, b) = (self.each(), other.each());
                self.set(std::array::from_fn(|lane| a[lane].max(b[lane])));
            }
        }
    }
}

/// The epoch to which each agent is known; agents that it does not name are not known at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(Vec<Known>);

impl Clock {
    #[inline]
    pub fn covers(&self, agent: u32, mask: u32, epoch: u32) -> bool {
        self.0
            .get(agent as usize)
            .is_some_and(|known| known.covers(mask, epoch))
    }

    /// Whether anything of an agent is known.
    pub fn knows(&self, agent: u32) -> bool {
        self.0
            .get(agent as usize)
            .is_some_and(|known| *known != Known::All(0))
    }

    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Known::All(0));
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.join(other);
        }
    }

    /// The lanes of a mask are known to an epoch each.
    pub fn raise(&mut self, agent: u32, mask: u32, epochs: impl Fn(usize) -> u32) {
        let at = agent as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, Known::All(0));
        }
        let mut each = self.0[at].each();
        for lane in lanes(mask) {
            each[lane as usize] = each[lane as usize].max(epochs(lane as usize));
        }
        self.0[at].set(each);
    }

    /// An agent without lanes.
    pub fn raise_all(&mut self, agent: u32, epoch: u32) {
        self.raise(agent, u32::MAX, |_| epoch);
    }
}

/// What is known of each cluster of a grid.
pub type Reach = BTreeMap<u32, Arc<View>>;

/// Three degrees of what came before: done, visible to threads, visible to the async proxy. Each holds the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Enough to overwrite what was read, or what asynchronous work wrote.
    pub done: Clock,
    /// Enough to read or overwrite what a thread wrote.
    pub visible: Clock,
    /// Enough for asynchronous work to do so: in shared memory, and in global memory.
    pub fenced: [Clock; 2],
    /// Work on tensor memory that a `tcgen05.fence::before_thread_sync` or a commit told of.
    pub told: Clock,
    /// Such work from before a `tcgen05.fence::after_thread_sync`.
    pub heard: Clock,
    /// The grids before this one have ended.
    pub follows: bool,
    /// What is known of other clusters, by way of global memory.
    pub foreign: Option<Arc<Reach>>,
}

impl View {
    pub fn join(&mut self, other: &Self) {
        self.done.join(&other.done);
        self.visible.join(&other.visible);
        for (own, other) in self.fenced.iter_mut().zip(&other.fenced) {
            own.join(other);
        }
        self.told.join(&other.told);
        self.heard.join(&other.heard);
        self.follows |= other.follows;
        match (&mut self.foreign, &other.foreign) {
            (_, None) => {}
            (None, Some(_)) => self.foreign = other.foreign.clone(),
            (Some(own), Some(other)) if Arc::ptr_eq(own, other) => {}
            (Some(own), Some(other)) => join_reach(Arc::make_mut(own), other),
        }
    }

    /// The clock that must hold an earlier access: of one that crosses to the async proxy in shared memory (0) or in
    /// global memory (1), or of a thread's store.
    pub fn clock(&self, crosses: Option<usize>, stored: bool) -> &Clock {
        match crosses {
            Some(memory) => &self.fenced[memory],
            None if stored => &self.visible,
            None => &self.done,
        }
    }

    /// What an arrival or a wait that is relaxed passes on: reads, and work that has signalled its end.
    pub fn forget_stores(&mut self) {
        self.visible = Clock::default();
        self.fenced = Default::default();
    }

    /// Asynchronous work that has signalled its end.
    pub fn raise_all(&mut self, agent: u32, epoch: u32) {
        self.each_degree(|clock| clock.raise_all(agent, epoch));
    }

    pub fn each_degree(&mut self, change: impl FnMut(&mut Clock)) {
        let fenced = self.fenced.iter_mut();
        [&mut self.done, &mut self.visible]
            .into_iter()
            .chain(fenced)
            .for_each(change);
    }
}

pub fn join_reach(own: &mut Reach, other: &Reach) {
    for (cluster, view) in other {
        own.entry(*cluster)
            .and_modify(|own| {
                if !Arc::ptr_eq(own, view) {
                    Arc::make_mut(own).join(view);
                }
            })
            .or_insert_with(|| view.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_keep_lanes_apart() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.raise(2, 0b1, |_| 7);
        b.raise(2, 0b10, |_| 9);
        a.join(&b);
        assert!(a.covers(2, 0b1, 7) && !a.covers(2, 0b1, 8) && a.covers(2, 0b10, 9));
        assert!(!a.covers(2, 0b100, 1) && !a.covers(3, 1, 1));
        a.raise_all(2, 9);
        assert_eq!(a.0[2], Known::All(9), "equal lanes are one number again");
    }
}
