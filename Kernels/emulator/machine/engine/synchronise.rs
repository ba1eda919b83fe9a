//! Warps, barriers of blocks and clusters, and mbarriers.

use syntax::Type;

use super::{Engine, Flow, Run};
use crate::error::Trap;
use crate::mbarrier::Mbarrier;
use crate::op::*;
use crate::warp::{lanes, Wait, Warp};

impl Engine<'_> {
    pub(super) fn synchronise(
        &mut self,
        warp: &mut Warp,
        op: &Op,
        mask: u32,
        pc: usize,
    ) -> Run<Flow> {
        match op {
            Op::WarpSync => {
                if let Some(races) = &mut self.races {
                    races.synchronise_warp(self.block, warp.index, mask);
                }
            }
            Op::FenceProxyAsync { memories } => {
                if let Some(races) = &mut self.races {
                    races.fence_proxy(self.block, warp.index, mask, *memories);
                }
            }
            Op::Fence(scope) => {
                if let Some(races) = &mut self.races {
                    races.fence_memory(self.block, warp.index, mask, *scope);
                }
            }
            Op::GridWait => {
                if let Some(races) = &mut self.races {
                    races.follow(self.block, warp.index, mask);
                }
            }
            Op::FenceMbarrierInit => {
                if let Some(races) = &mut self.races {
                    races.publish(self.block, warp.index, mask);
                }
            }
            Op::ActiveMask(target) => warp.set_words(*target, mask, &[mask; LANES]),
            Op::Shuffle {
                kind,
                target,
                valid,
                a,
                b,
                clamp,
            } => {
                self.shuffle(warp, mask, *kind, (*target, *valid), (*a, *b, *clamp));
            }
            Op::Vote { kind, target, a } => {
                let votes = warp.bit(*a) & mask;
                let result = match kind {
                    Vote::All => u64::from(votes == mask),
                    Vote::Any => u64::from(votes != 0),
                    Vote::Uniform => u64::from(votes == mask || votes == 0),
                    Vote::Ballot => votes.into(),
                };
                warp.set_all(*target, mask, |_| result);
            }
            Op::Match {
                all,
                target,
                same,
                a,
            } => {
                let values = self.values(warp, *a);
                let equal = |lane: u32| {
                    lanes(mask)
                        .filter(|other| values[*other as usize] == values[lane as usize])
                        .fold(0u32, |found, other| found | 1 << other)
                };
                for lane in lanes(mask) {
                    let found = equal(lane);
                    let result = if *all && found != mask { 0 } else { found };
                    warp.set_lane(Target::Word(*target), lane, result.into());
                    warp.set_lane(*same, lane, u64::from(found == mask));
                }
            }
            Op::Redux {
                atomic,
                ty,
                absolute,
                nan,
                target,
                a,
            } => {
                let values = self.words(warp, *a);
                let value = |lane: u32| {
                    if *absolute {
                        values[lane as usize] & 0x7fff_ffff
                    } else {
                        values[lane as usize]
                    }
                };
                let mut result = u64::from(value(mask.trailing_zeros()));
                for lane in lanes(mask).skip(1) {
                    result = super::atomic::combine(*atomic, *ty, result, value(lane).into(), 0);
                }
                let is_nan = |lane| f32::from_bits(value(lane)).is_nan();
                if *ty == Type::F32 && (*nan && lanes(mask).any(is_nan) || lanes(mask).all(is_nan))
                {
                    result = 0x7fff_ffff;
                }
                warp.set_words(*target, mask, &[result as u32; LANES]);
            }
            Op::Elect { leader, elected } => {
                let first = mask.trailing_zeros();
                warp.set_all(*leader, mask, |_| first.into());
                warp.set_all(*elected, mask, |lane| u64::from(lane == first));
            }
            Op::Barrier {
                kind, id, count, a, ..
            } => return self.barrier(warp, mask, pc, (*kind, *id, *count, *a)),
            Op::ClusterArrive { relaxed } => {
                for lane in lanes(mask) {
                    if warp.cluster_arrivals[lane as usize] != 0 {
                        return Err(Trap::in_lane(
                            lane,
                            "arrives at the cluster's barrier twice without a wait",
                        ));
                    }
                    warp.cluster_arrivals[lane as usize] = self.cluster_phase + 1;
                }
                if let Some(races) = &mut self.races {
                    races.arrive_cluster(self.block, warp.index, mask, *relaxed);
                }
                self.cluster_arrived += mask.count_ones();
                self.complete_cluster();
            }
            Op::ClusterWait => {
                let arrivals = |lane: u32| warp.cluster_arrivals[lane as usize];
                if let Some(lane) = lanes(mask).find(|lane| arrivals(*lane) == 0) {
                    return Err(Trap::in_lane(
                        lane,
                        "waits for the cluster's barrier without having arrived there",
                    ));
                }
                let phase = lanes(mask).map(arrivals).max().unwrap_or(0);
                if phase > self.cluster_phase {
                    return Ok(Flow::Wait(Wait::Cluster { phase }));
                }
                warp.leave_cluster(mask);
                if let Some(races) = &mut self.races {
                    races.pass_cluster(self.block, warp.index, mask);
                }
            }
            Op::MbarrierInit { address, count } => {
                let (addresses, counts) = (
                    self.shared_addresses(warp, *address),
                    self.words(warp, *count),
                );
                for lane in lanes(mask) {
                    let address = addresses[lane as usize];
                    Self::check_alignment(lane, address.into(), 8)?;
                    let failed = |message| Trap::in_lane(lane, message);
                    self.shared(address, 8).map_err(failed)?;
                    let barrier = Mbarrier::new(counts[lane as usize]).map_err(failed)?;
                    self.blocks[address as usize >> 24]
                        .mbarriers
                        .insert(address & 0xff_ffff, barrier);
                    if let Some(races) = &mut self.races {
                        races.make_mbarrier(self.block, warp.index, lane, address, pc);
                    }
                }
            }
            Op::MbarrierInvalidate { address } => {
                let addresses = self.shared_addresses(warp, *address);
                for lane in lanes(mask) {
                    self.mbarrier(addresses[lane as usize])
                        .map_err(|message| Trap::in_lane(lane, message))?;
                    let address = addresses[lane as usize];
                    self.blocks[address as usize >> 24]
                        .mbarriers
                        .remove(&(address & 0xff_ffff));
                }
            }
            Op::MbarrierArrive {
                address,
                count,
                expects,
                completes,
                arrives,
                drops,
                stays,
                relaxed,
                state,
            } => {
                let addresses = self.shared_addresses(warp, *address);
                let counts = count.map_or([1; LANES], |count| self.words(warp, count));
                let bytes = expects.map(|bytes| self.words(warp, bytes));
                if *arrives {
                    self.release_to(warp.index, mask, &addresses, *relaxed)?;
                }
                for lane in lanes(mask) {
                    let at = lane as usize;
                    let mut before = 0;
                    self.change_mbarrier(addresses[at], |barrier| {
                        before = barrier.state();
                        if let Some(bytes) = bytes {
                            let bytes = i64::from(bytes[at]);
                            barrier.expect_bytes(if *completes { -bytes } else { bytes })?;
                        }
                        if *drops {
                            barrier.expected = barrier.expected.saturating_sub(counts[at]);
                        }
                        if *arrives {
                            let phase = barrier.phase;
                            barrier.arrive(counts[at])?;
                            if *stays && barrier.phase != phase {
                                return Err(
                                    "an arrival with .noComplete that ends the phase".to_owned()
                                );
                            }
                        }
                        Ok(())
                    })
                    .map_err(|message| Trap::in_lane(lane, message))?;
                    warp.set_lane(*state, lane, before);
                    self.progress += 1;
                }
            }
            Op::MbarrierTest { .. } => return self.test(warp, op, mask),
            Op::MbarrierPending { target, state } => {
                let states = self.wides(warp, *state);
                warp.set_all(Target::Word(*target), mask, |lane| {
                    states[lane as usize] & 0xf_ffff
                });
            }
            _ => return Err(Trap::new("an instruction that the machine cannot execute")),
        }
        Ok(Flow::Next)
    }

    pub(super) fn mbarrier(&mut self, address: u32) -> Result<&mut Mbarrier, String> {
        let ranks = self.blocks.len();
        let Some(block) = self.blocks.get_mut(address as usize >> 24) else {
            return Err(format!(
                "an mbarrier of block {} in a cluster of {ranks}",
                address >> 24
            ));
        };
        let offset = address & 0xff_ffff;
        block.mbarriers.get_mut(&offset).ok_or_else(|| {
            format!(
                "no mbarrier was initialised at shared +{}, or it was overwritten",
                i64::from(offset) - 1024
            )
        })
    }

    fn test(&mut self, warp: &mut Warp, op: &Op, mask: u32) -> Run<Flow> {
        let Op::MbarrierTest {
            address,
            relaxed,
            state,
            parity,
            waits,
            target,
        } = op
        else {
            return Err(Trap::new("not a test"));
        };
        let addresses = self.shared_addresses(warp, *address);
        let parities: Words = match (state, parity) {
            (Some(state), _) => self.wides(warp, *state).map(|state| (state >> 63) as u32),
            (None, Some(parity)) => self.words(warp, *parity),
            (None, None) => return Err(Trap::new("a test of no phase")),
        };
        let mut over = 0;
        for lane in lanes(mask) {
            let barrier = self
                .mbarrier(addresses[lane as usize])
                .map_err(|message| Trap::in_lane(lane, message))?;
            over |= u32::from(barrier.is_over(parities[lane as usize])) << lane;
        }
        self.observe(warp.index, (mask, over), &addresses, *relaxed)?;
        warp.set_bits(*target, mask, over);
        if over == mask {
            warp.waited = None;
            return Ok(Flow::Next);
        }
        let first = (mask & !over).trailing_zeros() as usize;
        let same = lanes(mask & !over).all(|lane| {
            addresses[lane as usize] == addresses[first]
                && parities[lane as usize] & 1 == parities[first] & 1
        });
        // A first wait returns without success, which it may: who ignores that is found out. The next one sleeps.
        let again = warp.waited.replace((addresses[first], parities[first] & 1));
        Ok(Flow::Wait(
            if *waits && same && over == 0 && again == warp.waited {
                Wait::Mbarrier {
                    address: addresses[first],
                    parity: parities[first] & 1,
                }
            } else {
                Wait::Round(self.round)
            },
        ))
    }

    fn shuffle(
        &self,
        warp: &mut Warp,
        mask: u32,
        kind: Shuffle,
        targets: (Target, Target),
        sources: (Word, Word, Word),
    ) {
        let (a, b, clamp) = (
            self.words(warp, sources.0),
            self.words(warp, sources.1),
            self.words(warp, sources.2),
        );
        let mut found = [(0u32, false); LANES];
        for lane in lanes(mask) {
            let at = lane as usize;
            let (step, segment, last) = (b[at] & 31, clamp[at] >> 8 & 31, clamp[at] & 31);
            let low = lane & segment;
            let high = low | last & !segment;
            let other = match kind {
                Shuffle::Up => lane as i32 - step as i32,
                Shuffle::Down => (lane + step) as i32,
                Shuffle::Butterfly => (lane ^ step) as i32,
                Shuffle::Index => (low | step & !segment) as i32,
            };
            let valid = match kind {
                Shuffle::Up => other >= high as i32,
                _ => other <= high as i32,
            };
            let other = if valid { other as u32 } else { lane };
            // A lane that takes no part has no defined value: a pattern that shows.
            found[at] = (
                if mask >> other & 1 == 1 {
                    a[other as usize]
                } else {
                    0xdead_beef
                },
                valid,
            );
        }
        warp.set_all(targets.0, mask, |lane| found[lane as usize].0.into());
        warp.set_all(targets.1, mask, |lane| found[lane as usize].1.into());
    }

    fn barrier(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        pc: usize,
        op: (BarrierKind, Word, Option<Word>, Option<Bit>),
    ) -> Run<Flow> {
        let (kind, id, count, a) = op;
        let first = mask.trailing_zeros() as usize;
        let id = self.words(warp, id)[first];
        if id >= 16 {
            return Err(Trap::new(format!("barrier {id}; a block has 16")));
        }
        let count = count.map(|count| self.words(warp, count)[first]);
        if let Some(count) = count.filter(|count| count % 32 != 0 || *count == 0) {
            return Err(Trap::new(format!(
                "a barrier for {count} threads, which are not whole warps"
            )));
        }
        let votes = a.map_or(0, |a| (warp.bit(a) & mask).count_ones());
        // A warp counts as a whole where its other lanes have left.
        let arriving = if count.is_some() && mask == warp.alive {
            32
        } else {
            mask.count_ones()
        };
        if let Some(races) = &mut self.races {
            races.arrive_named(self.block, warp.index, mask, id as usize);
        }
        let named = &mut self.blocks[self.block].named[id as usize];
        if named.arrived > 0 && named.expected != count {
            return Err(Trap::new(format!(
                "barrier {id} for {count:?} threads, while others wait for {:?}",
                named.expected
            )));
        }
        named.expected = count;
        named.arrived += arriving;
        named.votes += votes;
        named.voters += mask.count_ones();
        let phase = named.phase;
        if count.is_some_and(|count| named.arrived > count) {
            return Err(Trap::new(format!(
                "{} threads at barrier {id} for {count:?}",
                named.arrived
            )));
        }
        self.complete_named(id as usize);
        if kind == BarrierKind::Arrive {
            return Ok(Flow::Next);
        }
        let result = (!matches!(kind, BarrierKind::Sync)).then_some(pc);
        Ok(Flow::Wait(Wait::Barrier { id, phase, result }))
    }

    pub(super) fn complete_named(&mut self, id: usize) {
        let block = &mut self.blocks[self.block];
        let named = &mut block.named[id];
        if named.arrived > 0 && named.arrived >= named.expected.unwrap_or(block.live) {
            named.last = (named.votes, named.voters);
            (named.arrived, named.votes, named.voters) = (0, 0, 0);
            named.phase += 1;
            self.progress += 1;
            if let Some(races) = &mut self.races {
                races.complete_named(self.block, id);
            }
        }
    }

    pub(super) fn barrier_result(&self, warp: &mut Warp, mask: u32, id: u32, pc: usize) {
        let Op::Barrier { kind, target, .. } = &self.program.code[pc].op else {
            return;
        };
        let (votes, voters) = self.blocks[self.block].named[id as usize].last;
        let result = match kind {
            BarrierKind::And => u64::from(votes == voters),
            BarrierKind::Or => u64::from(votes > 0),
            _ => votes.into(),
        };
        warp.set_all(*target, mask, |_| result);
    }

    pub(super) fn complete_cluster(&mut self) {
        let live: u32 = self.blocks.iter().map(|block| block.live).sum();
        if self.cluster_arrived > 0 && self.cluster_arrived >= live {
            self.cluster_arrived = 0;
            self.cluster_phase += 1;
            self.progress += 1;
            if let Some(races) = &mut self.races {
                races.complete_cluster();
            }
        }
    }
}
