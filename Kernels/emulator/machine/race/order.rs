//! What the lanes of one warp know, and the work that they have under way.

use std::collections::VecDeque;

use super::clock::View;
use super::shadow::{Access, Proxy};
use super::{BULK, COPIES, PRODUCTS, STREAMS, THREADS};
use crate::op::LANES;
use crate::warp::lanes;

/// Work in groups that a lane waits for: `cp.async`, bulk stores, products.
#[derive(Clone, Debug)]
pub struct Stream {
    open: [u32; LANES],
    committed: [VecDeque<u32>; LANES],
    done: [u32; LANES],
    fenced: [u32; LANES],
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            open: [1; LANES],
            committed: std::array::from_fn(|_| VecDeque::new()),
            done: [0; LANES],
            fenced: [0; LANES],
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

#[derive(Clone, Debug)]
pub struct Order {
    /// The first of the warp's agents.
    agent: u32,
    /// Products belong to the warpgroup: a group of them is done for all four warps at once.
    pub product_agent: u32,
    /// Lanes that know the same.
    parts: Vec<(u32, View)>,
    now: u32,
    /// To which epoch a lane has fenced its own stores.
    fenced: [u32; LANES],
    pub copies: Stream,
    pub bulk: Stream,
    pub products: Stream,
}

impl Order {
    pub fn new(block: u32, warp: u32, warps_per_block: u32) -> Self {
        let first = block * warps_per_block;
        Self {
            agent: (first + warp) * STREAMS,
            product_agent: (first + (warp & !3)) * STREAMS + PRODUCTS,
            parts: vec![(u32::MAX, View::default())],
            now: 1,
            fenced: [0; LANES],
            copies: Stream::default(),
            bulk: Stream::default(),
            products: Stream::default(),
        }
    }

    pub fn access(&self, mask: u32, pc: usize, writes: bool, strong: bool) -> Access {
        Access {
            agent: self.agent + THREADS,
            lanes: mask,
            epoch: self.now,
            pc: pc as u32,
            proxy: Proxy::Generic,
            strong,
            writes,
            stored: writes,
        }
    }

    fn each_part(&mut self, mask: u32, mut change: impl FnMut(&mut View)) {
        for at in 0..self.parts.len() {
            let (own, view) = &mut self.parts[at];
            let (inside, outside) = (*own & mask, *own & !mask);
            if inside == 0 {
                continue;
            }
            if outside != 0 {
                let rest = view.clone();
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
        self.each_part(mask, |view| view.join(from));
    }

    /// All that lanes know and did until now, for whoever acquires it.
    pub fn release(&mut self, mask: u32) -> View {
        let mut parts = self.parts.iter().filter(|(own, _)| own & mask != 0);
        let mut view = parts
            .next()
            .map_or_else(View::default, |part| part.1.clone());
        for (_, part) in parts {
            view.join(part);
        }
        let now = self.now;
        view.done.raise(self.agent + THREADS, mask, |_| now);
        view.visible.raise(self.agent + THREADS, mask, |_| now);
        view.fenced
            .raise(self.agent + THREADS, mask, |lane| self.fenced[lane]);
        if self.copies.is_used() {
            let (agent, copies) = (self.agent + COPIES, &self.copies);
            view.done.raise(agent, mask, |lane| copies.done[lane]);
            view.visible.raise(agent, mask, |lane| copies.done[lane]);
            view.fenced.raise(agent, mask, |lane| copies.fenced[lane]);
        }
        if self.bulk.is_used() {
            let bulk = &self.bulk;
            view.done
                .raise(self.agent + BULK, mask, |lane| bulk.done[lane]);
        }
        self.now += 1;
        view
    }

    pub fn synchronise(&mut self, mask: u32) {
        let view = self.release(mask);
        self.acquire(mask, &view);
    }

    /// fence.proxy.async.
    pub fn fence(&mut self, mask: u32) {
        self.each_part(mask, |view| view.fenced.join(&view.visible));
        for lane in lanes(mask) {
            let lane = lane as usize;
            self.fenced[lane] = self.now;
            self.copies.fenced[lane] = self.copies.done[lane];
        }
        self.now += 1;
    }

    /// wgmma.wait_group, by all lanes.
    pub fn wait_products(&mut self, left: usize) {
        self.products.wait(1, left);
        let (agent, done) = (self.product_agent, self.products.done[0]);
        self.each_part(u32::MAX, |view| view.raise_all(agent, done));
    }

    /// Whether an earlier access comes before one of `mask`, whichever thread runs first.
    #[inline]
    pub fn is_after(&self, mask: u32, access: &Access, earlier: &Access) -> bool {
        if access.strong && earlier.strong {
            return true;
        }
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
            let clock = if crosses {
                &view.fenced
            } else if earlier.stored {
                &view.visible
            } else {
                &view.done
            };
            clock.covers(earlier.agent, earlier.lanes, earlier.epoch)
        };
        let mut parts = self.parts.iter().filter(|(own, _)| own & mask != 0);
        if access.proxy == Proxy::Async {
            parts.any(|(_, view)| knows(view))
        } else {
            parts.all(|(_, view)| knows(view))
        }
    }

    /// Whether lanes know of anything that a thread of those agents did.
    pub fn has_heard_of(&self, mask: u32, mut agents: impl Iterator<Item = u32>) -> bool {
        let (_, view) = match self.parts.iter().find(|(own, _)| own & mask != 0) {
            Some(part) => part,
            None => return false,
        };
        agents.any(|agent| view.done.knows(agent))
    }

    /// Whether a warp has waited for a group of products.
    pub fn has_products(&self, group: u32) -> bool {
        self.products.done[0] >= group
    }

    /// Whether asynchronous work meets what a thread stored.
    pub fn crosses(access: &Access, earlier: &Access) -> bool {
        access.proxy == Proxy::Async && earlier.proxy == Proxy::Generic && earlier.writes
    }

    // Work of a whole warp comes after what each lane did before it; its loads and stores do not, since they are
    // not barriers.
    fn in_program_order(
        &self,
        mask: u32,
        access: &Access,
        earlier: &Access,
        (stream, crosses): (u32, bool),
    ) -> bool {
        let alone = mask.is_power_of_two() && earlier.lanes == mask;
        let jointly = access.proxy == Proxy::Async && mask == u32::MAX;
        let reached = |epochs: &[u32; LANES]| {
            (alone || jointly)
                && lanes(earlier.lanes).all(|lane| epochs[lane as usize] >= earlier.epoch)
        };
        match stream {
            THREADS if crosses => reached(&self.fenced),
            THREADS => alone || jointly || !earlier.writes && mask & !earlier.lanes == 0,
            COPIES if crosses => reached(&self.copies.fenced),
            COPIES => reached(&self.copies.done),
            BULK => reached(&self.bulk.done),
            _ => false,
        }
    }
}
