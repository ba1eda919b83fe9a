//! What the lanes of one warp know, and the work that they have under way.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::{join_reach, Reach, View};
use super::shadow::{Access, Proxy};
use super::{BULK, BULK_WRITES, COPIES, PRODUCTS, STREAMS, TENSOR_LOADS, TENSOR_STORES, THREADS};
use crate::op::{Scope, LANES};
use crate::warp::lanes;

/// Work in groups that a lane waits for: `cp.async`, bulk stores, products.
#[derive(Clone, Debug)]
pub struct Stream {
    open: [u32; LANES],
    committed: [VecDeque<u32>; LANES],
    done: [u32; LANES],
    fenced: [[u32; LANES]; 2],
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            open: [1; LANES],
            committed: std::array::from_fn(|_| VecDeque::new()),
            done: [0; LANES],
            fenced: [[0; LANES]; 2],
        }
    }
}

impl Stream {
    /// The group that a lane's next piece of work belongs to.
    pub fn open(&self, lane: u32) -> u32 {
        self.open[lane as usize]
    }

    pub fn commit(&mut self, mask: u32) {
        for lane in lanes(mask) {
            let lane = lane as usize;
            self.committed[lane].push_back(self.open[lane]);
            self.open[lane] += 1;
        }
    }

    /// Ends the open group without committing it, and returns its number.
    pub fn cut(&mut self, lane: u32) -> u32 {
        self.open[lane as usize] += 1;
        self.open[lane as usize] - 1
    }

    pub fn wait(&mut self, mask: u32, left: usize) {
        for lane in lanes(mask) {
            let lane = lane as usize;
            while self.committed[lane].len() > left {
                self.done[lane] = self.committed[lane].pop_front().unwrap_or(0);
            }
        }
    }

    pub fn is_used(&self) -> bool {
        self.open.iter().any(|open| *open > 1)
    }
}

/// Which of `tcgen05.fence::before_thread_sync` and `::after_thread_sync` a kernel has: it is held to those. One
/// without is judged by its waits and barriers alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorFences {
    pub before: bool,
    pub after: bool,
}

/// What lanes know, and what of it relaxed accesses may pass on or have yet to bring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Knowledge {
    view: View,
    /// As it was at the last fence.
    released: Option<Arc<View>>,
    /// What the next fence brings.
    pending: Reach,
}

#[derive(Clone, Debug)]
pub struct Order {
    cluster: u32,
    fences: TensorFences,
    /// The first of the warp's agents.
    agent: u32,
    /// Lanes that know the same.
    parts: Vec<(u32, Knowledge)>,
    now: u32,
    /// To which epoch a lane has fenced its own stores to shared and to global memory.
    fenced: [[u32; LANES]; 2],
    /// Epochs of a lane's own accesses and bulk stores at its last fence of memory.
    released: [(u32, u32); LANES],
    pub copies: Stream,
    pub bulk: Stream,
    pub bulk_writes: Stream,
    pub products: Stream,
    pub tensor_loads: Stream,
    pub tensor_stores: Stream,
}

impl Order {
    pub fn new(cluster: u32, fences: TensorFences, warp: u32) -> Self {
        Self {
            cluster,
            fences,
            agent: warp * STREAMS,
            parts: vec![(u32::MAX, Knowledge::default())],
            now: 1,
            fenced: [[0; LANES]; 2],
            released: [(0, 0); LANES],
            copies: Stream::default(),
            bulk: Stream::default(),
            bulk_writes: Stream::default(),
            products: Stream::default(),
            tensor_loads: Stream::default(),
            tensor_stores: Stream::default(),
        }
    }

    pub fn access(&self, mask: u32, pc: usize, writes: bool, scope: Scope) -> Access {
        Access {
            cluster: self.cluster,
            agent: self.agent + THREADS,
            lanes: mask,
            epoch: self.now,
            pc: pc as u32,
            proxy: Proxy::Generic,
            global: false,
            scope,
            writes,
            stored: writes,
        }
    }

    fn each_part(&mut self, mask: u32, mut change: impl FnMut(&mut Knowledge)) {
        for at in 0..self.parts.len() {
            let (own, knowledge) = &mut self.parts[at];
            let (inside, outside) = (*own & mask, *own & !mask);
            if inside == 0 {
                continue;
            }
            if outside != 0 {
                let rest = knowledge.clone();
                *own = inside;
                self.parts.push((outside, rest));
            }
            change(&mut self.parts[at].1);
        }
        let mut at = 1;
        while at < self.parts.len() {
            match (0..at).find(|other| self.parts[*other].1 == self.parts[at].1) {
                Some(other) => {
                    let (mask, _) = self.parts.swap_remove(at);
                    self.parts[other].0 |= mask;
                }
                None => at += 1,
            }
        }
    }

    pub fn acquire(&mut self, mask: u32, from: &View) {
        let hears = !self.fences.after;
        self.each_part(mask, |knowledge| {
            let view = &mut knowledge.view;
            view.join(from);
            if hears {
                view.heard.join(&from.told);
            }
        });
    }

    /// All that lanes know and did until now, for whoever acquires it.
    pub fn release(&mut self, mask: u32) -> View {
        if !self.fences.before && self.tensor_loads.is_used() | self.tensor_stores.is_used() {
            self.tell_tensor(mask);
        }
        let mut parts = self.parts.iter().filter(|(own, _)| own & mask != 0);
        let mut view = parts
            .next()
            .map_or_else(View::default, |part| part.1.view.clone());
        for (_, part) in parts {
            view.join(&part.view);
        }
        let now = self.now;
        view.done.raise(self.agent + THREADS, mask, |_| now);
        view.visible.raise(self.agent + THREADS, mask, |_| now);
        for (clock, fenced) in view.fenced.iter_mut().zip(&self.fenced) {
            clock.raise(self.agent + THREADS, mask, |lane| fenced[lane]);
        }
        if self.copies.is_used() {
            let (agent, copies) = (self.agent + COPIES, &self.copies);
            view.done.raise(agent, mask, |lane| copies.done[lane]);
            view.visible.raise(agent, mask, |lane| copies.done[lane]);
            for (clock, fenced) in view.fenced.iter_mut().zip(&copies.fenced) {
                clock.raise(agent, mask, |lane| fenced[lane]);
            }
        }
        if self.bulk.is_used() {
            let bulk = &self.bulk;
            view.done
                .raise(self.agent + BULK, mask, |lane| bulk.done[lane]);
            let (agent, writes) = (self.agent + BULK_WRITES, &self.bulk_writes);
            view.each_degree(|clock| clock.raise(agent, mask, |lane| writes.done[lane]));
        }
        self.now += 1;
        view
    }

    pub fn synchronise(&mut self, mask: u32) {
        let view = self.release(mask);
        self.acquire(mask, &view);
    }

    /// fence.proxy.async of shared memory (0) or of global memory (1).
    pub fn fence(&mut self, mask: u32, memory: usize) {
        self.each_part(mask, |knowledge| {
            let view = &mut knowledge.view;
            view.fenced[memory].join(&view.visible);
        });
        for lane in lanes(mask) {
            let lane = lane as usize;
            self.fenced[memory][lane] = self.now;
            self.copies.fenced[memory][lane] = self.copies.done[lane];
        }
        self.now += 1;
    }

    /// wgmma.wait_group, by all lanes.
    pub fn wait_products(&mut self, left: usize) {
        self.products.wait(1, left);
        let (agent, done) = (self.agent + PRODUCTS, self.products.done[0]);
        self.each_part(u32::MAX, |knowledge| knowledge.view.raise_all(agent, done));
    }

    /// What a relaxed access passes on: what its lane knew and did before its last fence.
    pub fn release_relaxed(&mut self, lane: u32) -> View {
        let part = self.parts.iter().find(|(own, _)| own >> lane & 1 == 1);
        let released = part.and_then(|(_, knowledge)| knowledge.released.as_deref());
        let mut view = released.cloned().unwrap_or_default();
        let (own, bulk) = self.released[lane as usize];
        for clock in [&mut view.done, &mut view.visible] {
            clock.raise(self.agent + THREADS, 1 << lane, |_| own);
            clock.raise(self.agent + BULK_WRITES, 1 << lane, |_| bulk);
        }
        self.now += 1;
        view
    }

    /// Knowledge out of global memory; of a relaxed access it counts from the next fence on.
    pub fn acquire_reach(&mut self, lane: u32, reach: &Reach, acquires: bool) {
        let cluster = self.cluster;
        self.each_part(1 << lane, |knowledge| {
            if acquires {
                enter(&mut knowledge.view, cluster, reach);
            } else {
                join_reach(&mut knowledge.pending, reach);
            }
        });
    }

    /// fence.acq_rel or fence.sc of the device.
    pub fn fence_memory(&mut self, mask: u32) {
        let cluster = self.cluster;
        self.each_part(mask, |knowledge| {
            enter(
                &mut knowledge.view,
                cluster,
                &std::mem::take(&mut knowledge.pending),
            );
            knowledge.released = Some(Arc::new(knowledge.view.clone()));
        });
        for lane in lanes(mask) {
            let lane = lane as usize;
            self.released[lane] = (self.now, self.bulk_writes.done[lane]);
        }
        self.now += 1;
    }

    /// griddepcontrol.wait.
    pub fn follow(&mut self, mask: u32) {
        self.each_part(mask, |knowledge| knowledge.view.follows = true);
    }

    pub fn follows(&self, mask: u32) -> bool {
        let mut parts = self.parts.iter().filter(|(own, _)| own & mask != 0);
        parts.all(|(_, knowledge)| knowledge.view.follows)
    }

    /// tcgen05.wait::ld or ::st, by all lanes.
    pub fn wait_tensor(&mut self, loads: bool) {
        let (stream, agent) = if loads {
            (&mut self.tensor_loads, self.agent + TENSOR_LOADS)
        } else {
            (&mut self.tensor_stores, self.agent + TENSOR_STORES)
        };
        stream.commit(1);
        stream.wait(1, 0);
        let done = stream.done[0];
        self.each_part(u32::MAX, |knowledge| {
            for clock in [&mut knowledge.view.done, &mut knowledge.view.visible] {
                clock.raise_all(agent, done);
            }
        });
    }

    /// tcgen05.fence::before_thread_sync: others may hear of what is done.
    pub fn tell_tensor(&mut self, mask: u32) {
        let own = [TENSOR_LOADS, TENSOR_STORES].map(|stream| self.agent + stream);
        let done = [self.tensor_loads.done[0], self.tensor_stores.done[0]];
        self.each_part(mask, |knowledge| {
            let view = &mut knowledge.view;
            view.told.join(&view.heard);
            for (agent, done) in own.into_iter().zip(done) {
                view.told.raise_all(agent, done);
            }
        });
    }

    /// tcgen05.fence::after_thread_sync.
    pub fn hear_tensor(&mut self, mask: u32) {
        self.each_part(mask, |knowledge| {
            let view = &mut knowledge.view;
            view.heard.join(&view.told);
        });
    }

    /// Whether work on tensor memory comes before an access of lanes: waited for by the warp itself, or heard of.
    pub fn has_heard(&self, mask: u32, earlier: &Access) -> bool {
        let own = match earlier.agent.wrapping_sub(self.agent) {
            TENSOR_LOADS => self.tensor_loads.done[0] >= earlier.epoch,
            TENSOR_STORES => self.tensor_stores.done[0] >= earlier.epoch,
            _ => false,
        };
        let mut parts = self.parts.iter().filter(|(lanes, _)| lanes & mask != 0);
        let heard = |(_, known): &(u32, Knowledge)| {
            known.view.heard.covers(earlier.agent, 1, earlier.epoch)
        };
        own || parts.all(heard)
    }

    /// Whether lanes know that an access of another cluster came before.
    pub fn is_after_foreign(&self, mask: u32, access: &Access, earlier: &Access) -> bool {
        let crosses = Self::crosses(access, earlier);
        let mut parts = self.parts.iter().filter(|(own, _)| own & mask != 0);
        parts.all(|(_, known)| {
            let reach = known.view.foreign.as_ref();
            let view = reach.and_then(|reach| reach.get(&earlier.cluster));
            view.is_some_and(|view| {
                let clock = view.clock(crosses, earlier.stored);
                clock.covers(earlier.agent, earlier.lanes, earlier.epoch)
            })
        })
    }

    /// Whether an earlier access comes before one of `mask`, whichever thread runs first.
    #[inline]
    pub fn is_after(&self, mask: u32, access: &Access, earlier: &Access) -> bool {
        let crosses = Self::crosses(access, earlier);
        if let Some(stream) = earlier
            .agent
            .checked_sub(self.agent)
            .filter(|stream| *stream < STREAMS)
        {
            if self.in_program_order(mask, access, earlier, (stream, crosses)) {
                return true;
            }
        }
        let knows = |view: &View| {
            let clock = view.clock(crosses, earlier.stored);
            clock.covers(earlier.agent, earlier.lanes, earlier.epoch)
        };
        let mut parts = self.parts.iter().filter(|(own, _)| own & mask != 0);
        if access.proxy == Proxy::Async {
            parts.any(|(_, known)| knows(&known.view))
        } else {
            parts.all(|(_, known)| knows(&known.view))
        }
    }

    /// Whether lanes know of anything that a thread of those agents did.
    pub fn has_heard_of(&self, mask: u32, mut agents: impl Iterator<Item = u32>) -> bool {
        let (_, known) = match self.parts.iter().find(|(own, _)| own & mask != 0) {
            Some(part) => part,
            None => return false,
        };
        agents.any(|agent| known.view.done.knows(agent))
    }

    /// Whether asynchronous work meets what a thread stored: in shared memory (0), or in global memory (1).
    pub fn crosses(access: &Access, earlier: &Access) -> Option<usize> {
        let meets =
            access.proxy == Proxy::Async && earlier.proxy == Proxy::Generic && earlier.writes;
        meets.then_some(usize::from(access.global))
    }

    // Work of a whole warp comes after what each lane did before it; its loads and stores do not, since they are
    // not barriers.
    fn in_program_order(
        &self,
        mask: u32,
        access: &Access,
        earlier: &Access,
        (stream, crosses): (u32, Option<usize>),
    ) -> bool {
        let alone = mask.is_power_of_two() && earlier.lanes == mask;
        let jointly = access.proxy == Proxy::Async && mask == u32::MAX;
        let reached = |epochs: &[u32; LANES]| {
            (alone || jointly)
                && lanes(earlier.lanes).all(|lane| epochs[lane as usize] >= earlier.epoch)
        };
        match (stream, crosses) {
            (THREADS, Some(memory)) => reached(&self.fenced[memory]),
            (COPIES, Some(memory)) => reached(&self.copies.fenced[memory]),
            (THREADS, None) => alone || jointly || !earlier.writes && mask & !earlier.lanes == 0,
            (COPIES, None) => reached(&self.copies.done),
            (BULK, _) => reached(&self.bulk.done),
            (BULK_WRITES, _) => reached(&self.bulk_writes.done),
            _ => false,
        }
    }
}

/// What is known of the own cluster and of the others.
fn enter(view: &mut View, cluster: u32, reach: &Reach) {
    if let Some(own) = reach.get(&cluster) {
        view.join(own);
    }
    let others = reach.iter().filter(|(other, _)| **other != cluster);
    let others: Reach = others.map(|(other, view)| (*other, view.clone())).collect();
    if !others.is_empty() {
        join_reach(Arc::make_mut(view.foreign.get_or_insert_default()), &others);
    }
}
