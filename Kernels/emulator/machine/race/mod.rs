//! Finds accesses of shared, tensor and global memory that nothing orders, whichever of them came first.
//!
//! FastTrack over barriers, mbarriers and the ends of asynchronous work. Clocks are kept per warp, and apart for lanes
//! that know different things; epochs per access. Asynchronous work counts from its issue to the event that its
//! completion is known by, so that no schedule hides a race. Shuffles and votes order nothing, as documented.

mod clock;
mod global;
mod order;
mod shadow;
mod tensor;
mod words;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

pub use clock::View;
pub use global::{Global, Touched};
use order::Order;
pub use order::TensorFences;
use shadow::{Access, Proxy, Shadow};
pub use tensor::TensorBy;

use crate::op::{Scope, Strength};
use crate::program::Program;

/// Agents of a warp.
const STREAMS: u32 = 7;
const THREADS: u32 = 0;
const COPIES: u32 = 1;
const BULK: u32 = 2;
const PRODUCTS: u32 = 3;
const BULK_WRITES: u32 = 4;
const TENSOR_LOADS: u32 = 5;
const TENSOR_STORES: u32 = 6;

/// Who touches memory on behalf of a warp's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A load or store.
    Thread(Strength),
    /// `cp.async`.
    Copy,
    /// A bulk copy that a group waits for.
    Bulk,
    /// Its stores, of which other ones may be strong.
    BulkWrite(Scope),
    /// A warp's quarter of a wgmma.
    Product,
    /// tcgen05, of a block.
    Tensor { rank: u32 },
    /// A copy whose end an mbarrier tells.
    Barrier { address: u32, proxy: Proxy },
}

impl By {
    pub const WEAK: Self = Self::Thread(Strength::WEAK);

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
    cluster: u32,
    warps: Vec<Order>,
    warps_per_block: u32,
    shadows: Vec<Shadow>,
    tensors: Vec<Shadow>,
    global: Arc<Mutex<Global>>,
    named: Vec<Meeting>,
    meeting: Meeting,
    mbarriers: HashMap<u32, Phases>,
    strong: HashMap<u32, View>,
    /// Commits of tcgen05 by block, counted from 1.
    tensor: Vec<u32>,
    /// The mbarrier behind each agent after the warps and tensor cores.
    signals: Vec<u32>,
}

impl Races {
    pub fn new(
        (cluster, global): (u32, Arc<Mutex<Global>>),
        fences: TensorFences,
        blocks: usize,
        warps_per_block: usize,
        shared_bytes: usize,
    ) -> Self {
        let warps = warps_per_block as u32;
        Self {
            cluster,
            warps: (0..blocks as u32 * warps)
                .map(|warp| Order::new(cluster, fences, warp))
                .collect(),
            warps_per_block: warps,
            shadows: (0..blocks)
                .map(|_| Shadow::new(shadow::SHARED, shared_bytes))
                .collect(),
            tensors: Vec::new(),
            global,
            named: vec![Meeting::default(); 16 * blocks],
            meeting: Meeting::default(),
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
        let plain = order.access(mask, pc, writes, Scope::Weak);
        let lane = mask.trailing_zeros();
        let work = |agent, lanes, epoch, proxy| Access {
            agent,
            lanes,
            epoch,
            proxy,
            ..plain
        };
        match by {
            By::Thread(strength) => Access {
                scope: strength.scope,
                ..plain
            },
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
            By::BulkWrite(scope) => Access {
                scope,
                stored: false,
                ..work(
                    plain.agent + BULK_WRITES,
                    mask,
                    order.bulk_writes.open(lane),
                    Proxy::Async,
                )
            },
            By::Product => work(
                plain.agent + PRODUCTS,
                1,
                order.products.open(0),
                Proxy::Async,
            ),
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
        if matches!(by, By::Thread(strength) if strength.scope != Scope::Weak) {
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
        let warps = self.warps_per_block;
        let ordered = |earlier: &Access| {
            may_meet(warps, &access, earlier) || order.is_after(mask, &access, earlier)
        };
        let found = shadow.touch((offset, offset + bytes), access, &ordered);
        found.map_err(|conflict| {
            let place = words::shared(rank, conflict.offset);
            self.describe(program, (at, mask), &access, &place, &conflict)
        })
    }

    pub fn synchronise_warp(&mut self, block: usize, warp: u32, mask: u32) {
        self.order(block, warp).synchronise(mask);
    }

    /// fence.proxy.async of shared memory, of global memory, or of both.
    pub fn fence_proxy(&mut self, block: usize, warp: u32, mask: u32, memories: [bool; 2]) {
        for memory in (0..2).filter(|memory| memories[*memory]) {
            self.order(block, warp).fence(mask, memory);
        }
        if memories[0] {
            self.publish(block, warp, mask);
        }
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
            view.forget_stores();
        }
        self.meeting.gathered.join(&view);
    }

    pub fn complete_cluster(&mut self) {
        self.meeting.complete();
    }

    pub fn pass_cluster(&mut self, block: usize, warp: u32, mask: u32) {
        let at = block * self.warps_per_block as usize + warp as usize;
        self.warps[at].acquire(mask, &self.meeting.last);
    }

    pub fn make_mbarrier(&mut self, block: usize, warp: u32, lane: u32, address: u32, pc: usize) {
        // An arrival that orders no memory is enough: a fence of its own makes it visible.
        let made = Access {
            stored: false,
            ..self
                .order(block, warp)
                .access(1 << lane, pc, true, Scope::Weak)
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

    pub fn pass_mbarrier(
        &mut self,
        block: usize,
        warp: u32,
        mask: u32,
        address: u32,
        relaxed: bool,
    ) {
        let at = block * self.warps_per_block as usize + warp as usize;
        let Some(phases) = self.mbarriers.get(&address) else {
            return;
        };
        if relaxed {
            let mut view = phases.meeting.last.clone();
            view.forget_stores();
            self.warps[at].acquire(mask, &view);
        } else {
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
        let order = self.order(block, warp);
        order.bulk.commit(mask);
        order.bulk_writes.commit(mask);
    }

    /// Waits until sources were read, or until what they became is there too.
    pub fn wait_bulk(&mut self, (block, warp, mask): (usize, u32, u32), left: usize, read: bool) {
        let order = self.order(block, warp);
        order.bulk.wait(mask, left);
        if !read {
            order.bulk_writes.wait(mask, left);
        }
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
        view.told.join(&view.heard);
        view.told.raise_all(agent, self.tensor[block]);
        self.tensor[block] += 1;
        view
    }
}

/// Whether accesses are strong in each other's scope.
fn may_meet(warps_per_block: u32, a: &Access, b: &Access) -> bool {
    let block = |access: &Access| access.agent / STREAMS / warps_per_block;
    let needed = if a.cluster != b.cluster {
        Scope::Device
    } else if block(a) != block(b) {
        Scope::Cluster
    } else {
        Scope::Block
    };
    a.scope >= needed && b.scope >= needed
}
