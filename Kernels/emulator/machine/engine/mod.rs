//! Runs the blocks of a cluster: which warp next, when work lands, who waits for what.

mod asynchronous;
mod atomic;
mod execute;
mod landing;
mod maps;
mod matrix;
mod ordering;
mod plain;
mod shared;
mod signals;
mod synchronise;
mod tcgen;
mod tensor_access;
mod tensor_order;
mod tensor_product;
pub mod work;

use std::collections::{BTreeMap, VecDeque};

use crate::counters::Tally;
use crate::error::{Error, Trap};
use crate::launch::{Launch, Schedule};
use crate::memory::{Recent, View};
use crate::op::*;
use crate::program::Program;
use crate::race::Races;
use crate::random::Random;
use crate::tensor_memory::TensorMemory;
use crate::warp::{lanes, Group, Wait, Warp};
use work::{Pending, TensorPending};

pub type Run<T> = Result<T, Trap>;

/// A named barrier of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    pub arrived: u32,
    /// Threads that were asked for; none: all of the block that live.
    pub expected: Option<u32>,
    pub phase: u64,
    pub votes: u32,
    pub voters: u32,
    /// Votes and voters of the phase before.
    pub last: (u32, u32),
}

pub struct Block {
    pub id: [u32; 3],
    pub shared: Vec<u8>,
    pub warps: Vec<Warp>,
    pub named: [Named; 16],
    pub mbarriers: BTreeMap<u32, crate::mbarrier::Mbarrier>,
    pub live: u32,
    pub tensor: Option<Box<TensorMemory>>,
    pub tensor_queue: VecDeque<TensorPending>,
}

/// What an instruction does to the control of its group.
pub enum Flow {
    Next,
    Jump(usize),
    /// Some lanes go elsewhere.
    Split(Vec<(u32, usize)>),
    Exit,
    Wait(Wait),
    /// The same instruction once more, when others may have freed columns.
    Again,
}

pub struct Engine<'a> {
    pub program: &'a Program,
    pub launch: &'a Launch,
    pub memory: &'a View,
    pub parameter_address: u64,
    pub blocks: Vec<Block>,
    pub random: Random,
    pub recent: Recent,
    pub round: u64,
    /// The last round in which nobody could go on.
    pub rested: u64,
    /// Events that bring somebody further.
    pub progress: u64,
    pub queue: Vec<Pending>,
    pub cluster_arrived: u32,
    pub cluster_phase: u64,
    /// Waits for mbarriers return without success.
    pub timeout: bool,
    /// Of each block.
    pub tallies: &'a mut [Tally],
    /// Where races are looked for.
    pub races: Option<Box<Races>>,
    pub executed: u64,
    pub block: usize,
    /// The instruction that runs.
    pub pc: usize,
}

const SLICE: u32 = 400;
/// Rounds of which nobody gets anything before a deadlock is called one.
const PATIENCE: u32 = 4;

impl<'a> Engine<'a> {
    /// Of the block whose thread or work runs.
    fn tally(&mut self) -> &mut Tally {
        &mut self.tallies[self.block]
    }

    /// Runs one cluster to its end.
    pub fn run(mut self, cluster: u64) -> Result<(), Error> {
        let mut order: Vec<(usize, usize)> = (0..self.blocks.len())
            .flat_map(|block| (0..self.blocks[block].warps.len()).map(move |warp| (block, warp)))
            .collect();
        let mut idle = 0;
        loop {
            self.round += 1;
            let before = self.progress;
            let shuffles = self.launch.schedule != Schedule::AtOnce;
            if shuffles {
                self.random.shuffle(&mut order);
            }
            for (block, warp) in &order {
                if self.blocks[*block].warps[*warp].alive == 0 {
                    continue;
                }
                let budget = if shuffles {
                    1 + self.random.below(SLICE)
                } else {
                    SLICE
                };
                self.slice(*block, *warp, budget)?;
            }
            self.timeout = false;
            self.drain()?;
            if self.executed > self.launch.limit {
                return Err(Error::Launch {
                    kernel: self.program.name.clone(),
                    reason: format!(
                        "cluster {cluster} has not ended after {} thread instructions",
                        self.executed
                    ),
                });
            }
            if self.blocks.iter().all(|block| block.live == 0) {
                while self.force()? {}
                self.check_end(cluster)?;
                return Ok(());
            }
            if self.progress != before {
                idle = 0;
                continue;
            }
            self.rested = self.round;
            if self.force()? {
                continue;
            }
            idle += 1;
            self.timeout = true;
            if idle > PATIENCE {
                return Err(Error::Deadlock {
                    kernel: self.program.name.clone(),
                    cluster,
                    report: self.report(),
                });
            }
        }
    }

    fn check_end(&self, cluster: u64) -> Result<(), Error> {
        for block in &self.blocks {
            if block
                .tensor
                .as_ref()
                .is_some_and(|tensor| tensor.columns_held() > 0)
            {
                return Err(Error::Launch {
                    kernel: self.program.name.clone(),
                    reason: format!(
                        "block {:?} of cluster {cluster} ended without freeing its tensor memory",
                        block.id
                    ),
                });
            }
        }
        Ok(())
    }

    fn report(&self) -> String {
        let mut text = String::new();
        for (rank, block) in self.blocks.iter().enumerate() {
            for warp in &block.warps {
                for group in &warp.groups {
                    let on = match group.wait {
                        Wait::Ready => "lanes that are elsewhere".to_owned(),
                        Wait::Round(_) => "a poll".to_owned(),
                        Wait::Columns(_) => "columns of tensor memory that others hold".to_owned(),
                        Wait::Barrier { id, .. } => {
                            let named = block.named[id as usize];
                            format!(
                                "barrier {id}, {} of {} arrived",
                                named.arrived,
                                named.expected.unwrap_or(block.live)
                            )
                        }
                        Wait::Cluster { .. } => "the cluster".to_owned(),
                        Wait::Mbarrier { address, parity } => {
                            let known = self
                                .blocks
                                .get(address as usize >> 24)
                                .and_then(|block| block.mbarriers.get(&(address & 0xff_ffff)));
                            let state = known.map_or("gone".to_owned(), |barrier| {
                                format!(
                                    "{} of {} arrivals and {} bytes missing",
                                    barrier.pending, barrier.expected, barrier.bytes
                                )
                            });
                            format!(
                                "mbarrier +{} of block {}, parity {parity}: {state}",
                                address & 0xff_ffff,
                                address >> 24
                            )
                        }
                    };
                    let stands = matches!(group.wait, Wait::Ready | Wait::Columns(_));
                    let pc = group.pc.saturating_sub(usize::from(!stands));
                    text += &format!(
                        "\n  block {rank} warp {}, {} lanes, wait for {on}\n    at {}",
                        warp.index,
                        group.mask.count_ones(),
                        self.program.place(pc),
                    );
                }
            }
        }
        text
    }

    pub(super) fn fault(
        &self,
        trap: Trap,
        block: usize,
        warp: Option<(u32, u32)>,
        pc: usize,
    ) -> Error {
        let who = match (trap.lane, warp) {
            (Some(lane), Some((warp, _))) => format!("thread {}", warp * 32 + lane),
            (None, Some((warp, mask))) => format!("warp {warp} (lanes {mask:#010x})"),
            _ => "asynchronous work".to_owned(),
        };
        Error::Fault {
            kernel: self.program.name.clone(),
            block: self.blocks[block].id,
            who,
            message: trap.message,
            place: Box::new(self.program.place(pc)),
        }
    }

    fn slice(&mut self, block: usize, index: usize, budget: u32) -> Result<(), Error> {
        let mut warp = std::mem::take(&mut self.blocks[block].warps[index]);
        self.block = block;
        let result = self.run_warp(&mut warp, budget);
        self.blocks[block].warps[index] = warp;
        result
    }

    fn is_ready(&self, group: &Group, timeout: bool) -> bool {
        match group.wait {
            Wait::Ready => true,
            Wait::Round(round) | Wait::Columns(round) => self.round > round,
            Wait::Barrier { id, phase, .. } => {
                self.blocks[self.block].named[id as usize].phase != phase
            }
            Wait::Cluster { phase } => self.cluster_phase >= phase,
            Wait::Mbarrier { address, parity } => {
                let barrier = self.blocks[address as usize >> 24]
                    .mbarriers
                    .get(&(address & 0xff_ffff));
                timeout || barrier.is_none_or(|barrier| barrier.is_over(parity))
            }
        }
    }

    fn wake(&mut self, warp: &mut Warp, timeout: bool) {
        for at in 0..warp.groups.len() {
            let group = warp.groups[at];
            if group.wait == Wait::Ready || !self.is_ready(&group, timeout) {
                continue;
            }
            if let Wait::Barrier {
                id,
                result: Some(pc),
                ..
            } = group.wait
            {
                self.barrier_result(warp, group.mask, id, pc);
            }
            if matches!(group.wait, Wait::Cluster { .. }) {
                warp.leave_cluster(group.mask);
            }
            self.pass(warp.index, &group);
            warp.groups[at].wait = Wait::Ready;
        }
        warp.merge();
    }

    // Lanes that an instruction needs and that are elsewhere.
    fn lacks_lanes(&self, warp: &Warp, group: &Group) -> bool {
        let Some(decoded) = self.program.code.get(group.pc) else {
            return false;
        };
        if matches!(decoded.gather, Gather::None) {
            return false;
        }
        let active = self.active(warp, decoded, group.mask);
        self.needed(warp, decoded.gather, active) & !group.mask != 0
    }

    // Lanes without which `active` ones cannot execute an instruction.
    fn needed(&self, warp: &Warp, gather: Gather, active: u32) -> u32 {
        let needed = match gather {
            _ if active == 0 => 0,
            Gather::None => 0,
            Gather::Warp => u32::MAX,
            Gather::Members(Word::Immediate(members)) => members,
            Gather::Members(word) => {
                let members = self.words(warp, word);
                lanes(active).fold(0, |all, lane| all | members[lane as usize])
            }
        };
        needed & warp.alive
    }

    // An instruction for the lanes that execute it, together or as each names its fellows.
    fn execute_together(
        &mut self,
        warp: &mut Warp,
        decoded: &Decoded,
        active: u32,
        pc: usize,
    ) -> Run<Flow> {
        let missing = self.needed(warp, decoded.gather, active) & !active;
        if missing != 0 {
            return Err(Trap::new(format!(
                "it needs lanes {missing:#010x} of its warp too, which its predicate leaves out"
            )));
        }
        let Gather::Members(word) = decoded.gather else {
            return self.execute(warp, &decoded.op, active, pc);
        };
        let members = self.words(warp, word);
        let mut left = active;
        while left != 0 {
            let first = left.trailing_zeros();
            let fellows = members[first as usize] & warp.alive;
            let agrees = |lane: u32| members[lane as usize] & warp.alive == fellows;
            if fellows >> first & 1 == 0 || !lanes(fellows).all(agrees) {
                return Err(Trap::in_lane(
                    first,
                    format!(
                        "its member mask {:#010x} is not that of all lanes it names, itself among them",
                        members[first as usize]
                    ),
                ));
            }
            self.execute(warp, &decoded.op, fellows, pc)?;
            left &= !fellows;
        }
        Ok(Flow::Next)
    }

    fn active(&self, warp: &Warp, decoded: &Decoded, mask: u32) -> u32 {
        match decoded.guard {
            None => mask,
            Some((number, false)) => mask & warp.bits[number as usize],
            Some((number, true)) => mask & !warp.bits[number as usize],
        }
    }

    fn choose(&self, warp: &Warp) -> Option<usize> {
        let ready = warp
            .groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.wait == Wait::Ready && !self.lacks_lanes(warp, group))
            .map(|(at, group)| (group.pc, at));
        // Lowest first makes lanes meet again; highest now and then keeps a loop from starving the rest.
        let chosen = if warp.rotate {
            ready.max()
        } else {
            ready.min()
        };
        chosen.map(|(_, at)| at)
    }

    fn run_warp(&mut self, warp: &mut Warp, budget: u32) -> Result<(), Error> {
        let mut left = budget;
        let mut polled = false;
        let mut ran = false;
        self.wake(warp, self.timeout);
        while left > 0 {
            let Some(at) = self.choose(warp) else { break };
            let mut group = warp.groups.swap_remove(at);
            // Where another group may be joined.
            let meet = warp
                .groups
                .iter()
                .filter(|other| other.wait == Wait::Ready && other.pc > group.pc)
                .map(|other| other.pc)
                .min()
                .unwrap_or(usize::MAX);
            let alone = warp.groups.is_empty();
            let mut first = true;
            let mut keep = true;
            while left > 0 {
                if group.pc >= meet && !first || group.pc >= self.program.code.len() {
                    break;
                }
                if !first && self.lacks_lanes(warp, &group) {
                    break;
                }
                first = false;
                let pc = group.pc;
                let program = self.program;
                let decoded = &program.code[pc];
                let active = self.active(warp, decoded, group.mask);
                left -= 1;
                ran = true;
                let threads = u64::from(active.count_ones());
                self.tallies[self.block].ran[pc] += threads;
                self.executed += threads;
                group.pc += 1;
                self.pc = pc;
                if active == 0 {
                    continue;
                }
                let flow = self
                    .land_named_loads(warp, pc)
                    .and_then(|()| self.execute_together(warp, decoded, active, pc))
                    .map_err(|trap| self.fault(trap, self.block, Some((warp.index, active)), pc))?;
                match flow {
                    Flow::Next => {}
                    Flow::Jump(target) if active == group.mask => {
                        group.pc = target;
                        if !alone {
                            break;
                        }
                    }
                    Flow::Jump(target) => {
                        group.mask &= !active;
                        warp.groups.push(Group {
                            mask: active,
                            pc: target,
                            wait: Wait::Ready,
                        });
                        break;
                    }
                    Flow::Split(parts) => {
                        group.mask &= !active;
                        warp.groups
                            .extend(parts.into_iter().map(|(mask, pc)| Group {
                                mask,
                                pc,
                                wait: Wait::Ready,
                            }));
                        keep = group.mask != 0;
                        break;
                    }
                    Flow::Exit => {
                        self.exit(warp, active).map_err(|trap| {
                            self.fault(trap, self.block, Some((warp.index, active)), pc)
                        })?;
                        group.mask &= !active;
                        keep = group.mask != 0;
                        if !keep {
                            break;
                        }
                    }
                    Flow::Again => {
                        polled = true;
                        group.pc = pc;
                        group.wait = Wait::Columns(self.round);
                        break;
                    }
                    Flow::Wait(wait) => {
                        polled |= matches!(wait, Wait::Round(_) | Wait::Mbarrier { .. });
                        if active != group.mask {
                            warp.groups.push(Group {
                                mask: active,
                                pc: group.pc,
                                wait,
                            });
                            group.mask &= !active;
                        } else {
                            group.wait = wait;
                        }
                        break;
                    }
                }
            }
            if keep && group.pc >= self.program.code.len() {
                // Off the end is a return.
                let pc = group.pc - 1;
                self.exit(warp, group.mask).map_err(|trap| {
                    self.fault(trap, self.block, Some((warp.index, group.mask)), pc)
                })?;
            } else if keep {
                warp.groups.push(group);
            }
            self.wake(warp, false);
            warp.rotate = false;
        }
        warp.rotate = left == 0 && warp.groups.len() > 1;
        if ran && !polled {
            self.progress += 1;
        }
        Ok(())
    }

    fn exit(&mut self, warp: &mut Warp, mask: u32) -> Run<()> {
        self.settle(warp, mask)?;
        for lane in lanes(mask) {
            if warp.cluster_arrivals[lane as usize] > self.cluster_phase {
                self.cluster_arrived -= 1;
            }
        }
        warp.alive &= !mask;
        self.blocks[self.block].live -= mask.count_ones();
        self.progress += 1;
        for id in 0..16 {
            self.complete_named(id);
        }
        self.complete_cluster();
        Ok(())
    }
}
