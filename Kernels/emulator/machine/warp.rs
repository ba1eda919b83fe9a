//! Registers, threads of control and outstanding work of 32 threads.

use std::collections::VecDeque;

use crate::engine::work::{Copy, Product, TensorRead, Work};
use crate::op::*;
use crate::program::Program;

/// Lanes that stand at one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub mask: u32,
    pub pc: usize,
    pub wait: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Ready,
    /// Until a round after this one: a poll that failed.
    Round(u64),
    /// The same for columns of tensor memory, at the instruction that asks for them.
    Columns(u64),
    /// A named barrier; the instruction that takes its result, if it has one.
    Barrier {
        id: u32,
        phase: u64,
        result: Option<usize>,
    },
    Cluster {
        phase: u64,
    },
    Mbarrier {
        address: u32,
        parity: u32,
    },
}

#[derive(Debug, Default)]
pub struct Outstanding {
    /// Copies of the thread, landed or not.
    pub started: u64,
    pub open: Vec<Copy>,
    pub groups: VecDeque<Vec<Copy>>,
    pub bulk_open: Vec<Work>,
    pub bulk_groups: VecDeque<Vec<Work>>,
}

#[derive(Debug, Default)]
pub struct Products {
    pub fenced: bool,
    pub open: Vec<Product>,
    pub groups: VecDeque<Vec<Product>>,
}

#[derive(Debug, Default)]
pub struct Warp {
    pub index: u32,
    pub words: Box<[Words]>,
    pub wides: Box<[Wides]>,
    pub bits: Vec<u32>,
    pub carry: u32,
    pub local: Vec<u8>,
    pub groups: Vec<Group>,
    pub alive: u32,
    /// Of each lane; empty as long as there was none.
    outstanding: Vec<Outstanding>,
    pub products: Products,
    /// Loads from tensor memory that nobody has waited for.
    pub tensor_loads: Vec<TensorRead>,
    /// The phase of the cluster's barrier that each lane has arrived for and not waited for; 0 for none.
    pub cluster_arrivals: [u64; LANES],
    /// The mbarrier and parity of the last wait that failed.
    pub waited: Option<(u32, u32)>,
    /// The slice before ended while several groups could run.
    pub rotate: bool,
}

pub fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(mask), |mask| Some(mask & mask.wrapping_sub(1)))
        .take_while(|mask| *mask != 0)
        .map(u32::trailing_zeros)
}

/// Whole warps without looking at the mask lane by lane, so that the loop vectorises.
#[inline(always)]
fn fill<T>(to: &mut [T; LANES], mask: u32, value: impl Fn(u32) -> T) {
    if mask == u32::MAX {
        for (lane, to) in to.iter_mut().enumerate() {
            *to = value(lane as u32);
        }
    } else {
        for lane in lanes(mask) {
            to[lane as usize] = value(lane);
        }
    }
}

impl Warp {
    /// A warp of a block of so many threads, before its first instruction.
    pub fn new(program: &Program, index: u32, threads: u32) -> Self {
        let lanes = (threads - index * 32).min(32);
        let alive = if lanes == 32 {
            u32::MAX
        } else {
            (1 << lanes) - 1
        };
        Self {
            index,
            // SAFETY: zeros are words.
            words: unsafe { Box::new_zeroed_slice(program.words as usize).assume_init() },
            // SAFETY: as above.
            wides: unsafe { Box::new_zeroed_slice(program.wides as usize).assume_init() },
            bits: vec![0; program.bits as usize],
            local: vec![0; program.local_bytes as usize * LANES],
            groups: vec![Group {
                mask: alive,
                pc: 0,
                wait: Wait::Ready,
            }],
            alive,
            ..Self::default()
        }
    }

    pub fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    pub fn outstanding(&mut self, lane: u32) -> &mut Outstanding {
        if self.outstanding.is_empty() {
            self.outstanding.resize_with(LANES, Outstanding::default);
        }
        &mut self.outstanding[lane as usize]
    }

    /// Lanes have waited for the cluster's barrier.
    pub fn leave_cluster(&mut self, mask: u32) {
        for lane in lanes(mask) {
            self.cluster_arrivals[lane as usize] = 0;
        }
    }

    #[inline(always)]
    pub fn set_words(&mut self, target: u32, mask: u32, values: &Words) {
        let to = &mut self.words[target as usize];
        if mask == u32::MAX {
            *to = *values;
        } else {
            for lane in 0..LANES {
                if mask >> lane & 1 == 1 {
                    to[lane] = values[lane];
                }
            }
        }
    }

    #[inline(always)]
    pub fn set_wides(&mut self, target: u32, mask: u32, values: &Wides) {
        let to = &mut self.wides[target as usize];
        if mask == u32::MAX {
            *to = *values;
        } else {
            for lane in 0..LANES {
                if mask >> lane & 1 == 1 {
                    to[lane] = values[lane];
                }
            }
        }
    }

    pub fn set_bits(&mut self, target: u32, mask: u32, values: u32) {
        let to = &mut self.bits[target as usize];
        *to = *to & !mask | values & mask;
    }

    pub fn bit(&self, bit: Bit) -> u32 {
        match bit {
            Bit::Register {
                number,
                negated: false,
            } => self.bits[number as usize],
            Bit::Register {
                number,
                negated: true,
            } => !self.bits[number as usize],
            Bit::Constant(true) => u32::MAX,
            Bit::Constant(false) => 0,
        }
    }

    pub fn set_lane(&mut self, target: Target, lane: u32, value: u64) {
        match target {
            Target::Nowhere => {}
            Target::Half(number) => {
                self.words[number as usize][lane as usize] = value as u32 & 0xffff
            }
            Target::Word(number) => self.words[number as usize][lane as usize] = value as u32,
            Target::Wide(number) => self.wides[number as usize][lane as usize] = value,
            Target::Bit(number) => {
                self.set_bits(number, 1 << lane, if value != 0 { u32::MAX } else { 0 })
            }
        }
    }

    #[inline(always)]
    pub fn set_all(&mut self, target: Target, mask: u32, value: impl Fn(u32) -> u64) {
        match target {
            Target::Nowhere => {}
            Target::Half(number) => fill(&mut self.words[number as usize], mask, |lane| {
                value(lane) as u32 & 0xffff
            }),
            Target::Word(number) => {
                fill(&mut self.words[number as usize], mask, |lane| {
                    value(lane) as u32
                });
            }
            Target::Wide(number) => fill(&mut self.wides[number as usize], mask, value),
            Target::Bit(_) => {
                for lane in lanes(mask) {
                    self.set_lane(target, lane, value(lane));
                }
            }
        }
    }

    /// Groups that stand at one instruction become one.
    pub fn merge(&mut self) {
        let mut at = 0;
        while at < self.groups.len() {
            let mut other = at + 1;
            while other < self.groups.len() {
                let (a, b) = (self.groups[at], self.groups[other]);
                if a.pc == b.pc && a.wait == Wait::Ready && b.wait == Wait::Ready {
                    self.groups[at].mask |= b.mask;
                    self.groups.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }
}
