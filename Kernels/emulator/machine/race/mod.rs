//! Finds accesses of shared memory that nothing orders, whichever of them happened to come first.
//!
//! FastTrack over barriers, mbarriers and the ends of asynchronous work. Clocks are kept per warp, and apart for lanes
//! that know different things; epochs per access. Asynchronous work counts from its issue to the event that its
//! completion is known by, so that no schedule hides a race. Shuffles and votes order nothing, as documented.

mod clock;
mod order;
mod shadow;
mod words;

use std::collections::HashMap;

pub use clock::View;
use order::Order;
use shadow::{Access, Proxy, Shadow};

use crate::program::Program;

/// Agents of a warp.
const STREAMS: u32 = 4;
const THREADS: u32 = 0;
const COPIES: u32 = 1;
const BULK: u32 = 2;
const PRODUCTS: u32 = 3;

/// Who touches shared memory on behalf of a warp's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A load or store; strong ones may meet each other.
    Thread { strong: bool },
    /// `cp.async`.
    Copy,
    /// A bulk copy that a group waits for.
    Bulk,
    /// wgmma.
    Product,
    /// tcgen05, of a block.
    Tensor { rank: u32 },
    /// A copy whose end an mbarrier tells.
    Barrier { address: u32, proxy: Proxy },
}

impl By {
    pub fn bulk_load(address: u32) -> Self {
        Self::Barrier {
            address,
            proxy: Proxy::Async,
        }
    }

    pub fn store_async(address: u32) -> Self {
        Self::Barrier {
            address,
            proxy: Proxy::Generic,
        }
    }
}

/// Arrivals of a phase, and what the phases before have brought.
#[derive(Clone, Debug, Default)]
struct Meeting {
    gathered: View,
    last: View,
}

impl Meeting {
    fn complete(&mut self) {
        self.last.join(&std::mem::take(&mut self.gathered));
    }
}

#[derive(Debug)]
struct Phases {
    agent: u32,
    epoch: u32,
    meeting: Meeting,
    made: Access,
    /// The thread that made it has fenced it, so that others and copies may use it.
    published: bool,
}

#[derive(Debug)]
pub struct Races {
    warps: Vec<Order>,
    warps_per_block: u32,
    shadows: Vec<Shadow>,
    named: Vec<Meeting>,
    cluster: Meeting,
    mbarriers: HashMap<u32, Phases>,
    strong: HashMap<u32, View>,
    /// Commits of tcgen05 by block, counted from 1.
    tensor: Vec<u32>,
    /// The mbarrier behind each agent after the warps and tensor cores.
    signals: Vec<u32>,
}

impl Races {
    pub fn new(blocks: usize, warps_per_block: usize, shared_bytes: usize) -> Self {
        let warps = warps_per_block as u32;
        Self {
            warps: (0..blocks as u32)
                .flat_map(|block| (0..warps).map(move |warp| Order::new(block, warp, warps)))
                .collect(),
            warps_per_block: warps,
            shadows: (0..blocks).map(|_| Shadow::new(shared_bytes)).collect(),
            named: vec![Meeting::default(); 16 * blocks],
            cluster: Meeting::default(),
            mbarriers: HashMap::new(),
            strong: HashMap::new(),
            tensor: vec![1; blocks],
            signals: Vec::new(),
        }
    }

    fn order(&mut self, block: usize, warp: u32) -> &mut Order {
        &mut self.warps[block * self.warps_per_block as usize + warp as usize]
    }

    fn tensor_agent(&self, rank: u32) -> u32 {
        self.warps.len() as u32 * STREAMS + rank
    }

    fn stamp(&self, order: &Order, mask: u32, by: By, (pc, writes): (usize, bool)) -> Access {
        let plain = order.access(mask, pc, writes, false);
        let lane = mask.trailing_zeros();
        let work = |agent, lanes, epoch, proxy| Access {
            agent,
            lanes,
            epoch,
            proxy,
            ..plain
        };
        match by {
            By::Thread { strong } => Access { strong, ..plain },
            By::Copy => work(
                plain.agent + COPIES,
                mask,
                order.copies.open(lane),
                Proxy::Generic,
            ),
            By::Bulk => work(
                plain.agent + BULK,
                mask,
                order.bulk.open(lane),
                Proxy::Async,
            ),
            By::Product => work(order.product_agent, 1, order.products.open(0), Proxy::Async),
            By::Tensor { rank } => work(
                self.tensor_agent(rank),
                1,
                self.tensor[rank as usize],
                Proxy::Async,
            ),
            By::Barrier { address, proxy } => {
                // A copy for an mbarrier that is not there is refused elsewhere.
                let (agent, epoch) = self
                    .mbarriers
                    .get(&address)
                    .map_or((u32::MAX, 0), |phases| (phases.agent, phases.epoch));
                Access {
                    stored: false,
                    ..work(agent, 1, epoch, proxy)
                }
            }
        }
    }

    /// Notes that lanes of a warp touch `bytes` of shared memory, and says which access that is not ordered with.
    pub fn touch(
        &mut self,
        program: &Program,
        (block, warp, mask): (usize, u32, u32),
        (address, bytes): (u32, u32),
        by: By,
        (pc, writes): (usize, bool),
    ) -> Result<(), String> {
        let at = block * self.warps_per_block as usize + warp as usize;
        let (rank, offset) = (address >> 24, address & 0xff_ffff);
        if let By::Thread { strong: true } = by {
            let view = self.warps[at].release(mask);
            let place = self.strong.entry(address).or_default();
            place.join(&view);
            self.warps[at].acquire(mask, place);
        }
        let order = &self.warps[at];
        // Shared memory of a block that has not begun is not there yet.
        let first = rank * self.warps_per_block;
        let mut threads = (first..first + self.warps_per_block).map(|warp| warp * STREAMS);
        if rank as usize != block && !order.has_heard_of(mask, &mut threads) {
            return Err(format!(
                "race: shared memory of block {rank} of the cluster, which may not have begun"
            ));
        }
        let access = self.stamp(order, mask, by, (pc, writes));
        let Some(shadow) = self.shadows.get_mut(rank as usize) else {
            return Ok(());
        };
        let (warps, warps_per_block) = (&self.warps, self.warps_per_block);
        // A warp of the group that has waited for it wrote after it, though this one comes to its own part only now.
        let waited_for = |earlier: &Access| {
            let (own, writer) = (access.agent / STREAMS, earlier.agent / STREAMS);
            let same = by == By::Product
                && writer < warps.len() as u32
                && writer / warps_per_block == own / warps_per_block
                && writer % warps_per_block / 4 == own % warps_per_block / 4;
            same && earlier.stored && warps[writer as usize].has_products(access.epoch)
        };
        let ordered =
            |earlier: &Access| order.is_after(mask, &access, earlier) || waited_for(earlier);
        let found = shadow.touch((offset, offset + bytes), access, &ordered);
        found.map_err(|conflict| self.describe(program, at, mask, &access, rank, &conflict))
    }

    pub fn synchronise_warp(&mut self, block: usize, warp: u32, mask: u32) {
        self.order(block, warp).synchronise(mask);
    }

    pub fn fence_proxy(&mut self, block: usize, warp: u32, mask: u32) {
        self.order(block, warp).fence(mask);
        self.publish(block, warp, mask);
    }

    /// fence.mbarrier_init.
    pub fn publish(&mut self, block: usize, warp: u32, mask: u32) {
        let maker = (block as u32 * self.warps_per_block + warp) * STREAMS;
        for phases in self.mbarriers.values_mut() {
            phases.published |= phases.made.agent == maker && phases.made.lanes & mask != 0;
        }
    }

    pub fn arrive_named(&mut self, block: usize, warp: u32, mask: u32, id: usize) {
        let view = self.order(block, warp).release(mask);
        self.named[16 * block + id].gathered.join(&view);
    }

    pub fn complete_named(&mut self, block: usize, id: usize) {
        self.named[16 * block + id].complete();
    }

    pub fn pass_named(&mut self, block: usize, warp: u32, mask: u32, id: usize) {
        let at = block * self.warps_per_block as usize + warp as usize;
        self.warps[at].acquire(mask, &self.named[16 * block + id].last);
    }

    pub fn arrive_cluster(&mut self, block: usize, warp: u32, mask: u32, relaxed: bool) {
        let mut view = self.order(block, warp).release(mask);
        if relaxed {
            view.visible = clock::Clock::default();
            view.fenced = clock::Clock::default();
        }
        self.cluster.gathered.join(&view);
    }

    pub fn complete_cluster(&mut self) {
        self.cluster.complete();
    }

    pub fn pass_cluster(&mut self, block: usize, warp: u32, mask: u32) {
        let at = block * self.warps_per_block as usize + warp as usize;
        self.warps[at].acquire(mask, &self.cluster.last);
    }

    pub fn make_mbarrier(&mut self, block: usize, warp: u32, lane: u32, address: u32, pc: usize) {
        // An arrival that orders no memory is enough: a fence of its own makes it visible.
        let made = Access {
            stored: false,
            ..self.order(block, warp).access(1 << lane, pc, true, false)
        };
        self.signals.push(address);
        let agent = self.tensor_agent(self.shadows.len() as u32) + self.signals.len() as u32 - 1;
        self.mbarriers.insert(
            address,
            Phases {
                agent,
                epoch: 1,
                meeting: Meeting::default(),
                made,
                published: false,
            },
        );
    }

    pub fn release(&mut self, block: usize, warp: u32, mask: u32) -> View {
        self.order(block, warp).release(mask)
    }

    pub fn arrive_mbarrier(&mut self, address: u32, view: &View) {
        if let Some(phases) = self.mbarriers.get_mut(&address) {
            phases.meeting.gathered.join(view);
        }
    }

    pub fn complete_mbarrier(&mut self, address: u32) {
        if let Some(phases) = self.mbarriers.get_mut(&address) {
            phases.meeting.complete();
            phases.meeting.last.raise_all(phases.agent, phases.epoch);
            phases.epoch += 1;
        }
    }

    pub fn pass_mbarrier(&mut self, block: usize, warp: u32, mask: u32, address: u32) {
        let at = block * self.warps_per_block as usize + warp as usize;
        if let Some(phases) = self.mbarriers.get(&address) {
            self.warps[at].acquire(mask, &phases.meeting.last);
        }
    }

    pub fn commit_copies(&mut self, block: usize, warp: u32, mask: u32) {
        self.order(block, warp).copies.commit(mask);
    }

    pub fn wait_copies(&mut self, block: usize, warp: u32, mask: u32, left: usize) {
        self.order(block, warp).copies.wait(mask, left);
    }

    /// What arrives at an mbarrier once the copies of a lane until now are there.
    pub fn release_copies(&mut self, block: usize, warp: u32, lane: u32) -> View {
        let agent = (block as u32 * self.warps_per_block + warp) * STREAMS + COPIES;
        let order = self.order(block, warp);
        let group = order.copies.cut(lane);
        let mut view = order.release(1 << lane);
        view.done.raise(agent, 1 << lane, |_| group);
        view.visible.raise(agent, 1 << lane, |_| group);
        view
    }

    pub fn commit_bulk(&mut self, block: usize, warp: u32, mask: u32) {
        self.order(block, warp).bulk.commit(mask);
    }

    pub fn wait_bulk(&mut self, block: usize, warp: u32, mask: u32, left: usize) {
        self.order(block, warp).bulk.wait(mask, left);
    }

    pub fn commit_products(&mut self, block: usize, warp: u32) {
        self.order(block, warp).products.commit(1);
    }

    pub fn wait_products(&mut self, block: usize, warp: u32, left: usize) {
        self.order(block, warp).wait_products(left);
    }

    /// What a tcgen05.commit of a lane tells its mbarrier.
    pub fn release_tensor(&mut self, block: usize, warp: u32, lane: u32) -> View {
        let agent = self.tensor_agent(block as u32);
        let mut view = self.order(block, warp).release(1 << lane);
        view.raise_all(agent, self.tensor[block]);
        self.tensor[block] += 1;
        view
    }
}
