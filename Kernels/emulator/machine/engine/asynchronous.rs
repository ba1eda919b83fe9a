//! Copies that threads start and do not wait for: when they land is the schedule's choice.

use syntax::Type;

use super::ordering::Touch;
use super::work::{Copy, Work};
use super::{Engine, Run};
use crate::error::Trap;
use crate::launch::Queue;
use crate::op::*;
use crate::race::By;
use crate::tensor_map::{self, TensorMap};
use crate::warp::{lanes, Warp};

impl Engine<'_> {
    pub(super) fn asynchronous(
        &mut self,
        warp: &mut Warp,
        op: &Op,
        mask: u32,
        pc: usize,
    ) -> Run<()> {
        match op {
            Op::CopyAsync {
                bytes,
                shared,
                global,
                source_bytes,
                ignore,
            } => {
                let (to, from) = (
                    self.shared_addresses(warp, *shared),
                    self.addresses(warp, *global),
                );
                let sizes = source_bytes.map_or([*bytes; LANES], |size| self.words(warp, size));
                let ignored = ignore.map_or(0, |bit| warp.bit(bit));
                for lane in lanes(mask) {
                    let at = lane as usize;
                    let source_bytes = if ignored >> lane & 1 == 1 {
                        0
                    } else {
                        sizes[at].min(*bytes)
                    };
                    let own = warp.outstanding(lane);
                    let number = own.started;
                    own.started += 1;
                    let copy = Copy {
                        number,
                        to: to[at],
                        from: from[at],
                        bytes: *bytes,
                        source_bytes,
                    };
                    Self::check_alignment(lane, copy.to.into(), *bytes)?;
                    Self::check_alignment(lane, copy.from, *bytes)?;
                    self.touch(warp.index, 1 << lane, (copy.to, *bytes), By::Copy, true)
                        .and_then(|()| {
                            let from = (copy.from, source_bytes);
                            self.touch_global((warp.index, 1 << lane), from, By::Copy, Touch::Read)
                        })
                        .map_err(|message| Trap::in_lane(lane, message))?;
                    if self.defers(Queue::Loads) {
                        warp.outstanding(lane).open.push(copy);
                    } else {
                        self.copy(copy)
                            .map_err(|message| Trap::in_lane(lane, message))?;
                    }
                }
            }
            Op::CopyCommit => {
                if let Some(races) = &mut self.races {
                    races.commit_copies(self.block, warp.index, mask);
                }
                for lane in lanes(mask) {
                    let own = warp.outstanding(lane);
                    let group = std::mem::take(&mut own.open);
                    own.groups.push_back(group);
                }
            }
            Op::CopyWait(left) => {
                if let Some(races) = &mut self.races {
                    races.wait_copies(self.block, warp.index, mask, *left as usize);
                }
                for lane in lanes(mask) {
                    self.finish_copies(warp, lane, *left as usize)?;
                }
            }
            Op::CopyWaitAll => {
                if let Some(races) = &mut self.races {
                    races.commit_copies(self.block, warp.index, mask);
                    races.wait_copies(self.block, warp.index, mask, 0);
                }
                for lane in lanes(mask) {
                    let own = warp.outstanding(lane);
                    let group = std::mem::take(&mut own.open);
                    own.groups.push_back(group);
                    self.finish_copies(warp, lane, 0)?;
                }
            }
            Op::CopyArrive { address, counted } => {
                let addresses = self.shared_addresses(warp, *address);
                for lane in lanes(mask) {
                    let failed = |message| Trap::in_lane(lane, message);
                    let barrier = self.mbarrier(addresses[lane as usize]).map_err(failed)?;
                    if *counted {
                        barrier.pending += 1;
                    }
                    let view = self
                        .races
                        .as_mut()
                        .map(|races| Box::new(races.release_copies(self.block, warp.index, lane)));
                    let index = warp.index;
                    let own = warp.outstanding(lane);
                    let work = Work::CopyArrive {
                        warp: index,
                        lane,
                        barrier: addresses[lane as usize],
                        started: own.started,
                        view,
                    };
                    self.touch_work(warp.index, lane, &work).map_err(failed)?;
                    let hasty = self.is_hasty(Queue::Loads, work.signals());
                    match work {
                        Work::CopyArrive { view, .. }
                            if self.lands_at_once(Queue::Loads) && !hasty =>
                        {
                            self.arrive_with(addresses[lane as usize], view.as_deref());
                            self.arrive(addresses[lane as usize]).map_err(failed)?;
                        }
                        work => self.enqueue(work, pc)?,
                    }
                }
            }
            Op::BulkCommit => {
                if let Some(races) = &mut self.races {
                    races.commit_bulk(self.block, warp.index, mask);
                }
                for lane in lanes(mask) {
                    let own = warp.outstanding(lane);
                    let group = std::mem::take(&mut own.bulk_open);
                    own.bulk_groups.push_back(group);
                }
            }
            Op::BulkWait { groups, read } => {
                if let Some(races) = &mut self.races {
                    races.wait_bulk((self.block, warp.index, mask), *groups as usize, *read);
                }
                for lane in lanes(mask) {
                    self.finish_bulk(warp, lane, *groups as usize)?;
                }
            }
            Op::StoreAsync {
                ty,
                address,
                values,
                barrier,
            } => {
                let (to, barriers) = (
                    self.shared_addresses(warp, *address),
                    self.shared_addresses(warp, *barrier),
                );
                let bytes = ty.bytes() as usize;
                let data: Vec<Wides> = values
                    .iter()
                    .map(|value| self.values(warp, *value))
                    .collect();
                for lane in lanes(mask) {
                    let at = lane as usize;
                    Self::check_alignment(lane, to[at].into(), (bytes * data.len()) as u32)?;
                    if to[at] >> 24 != barriers[at] >> 24 {
                        return Err(Trap::in_lane(
                            lane,
                            "st.async: the mbarrier is in another block than the data",
                        ));
                    }
                    let data = data
                        .iter()
                        .flat_map(|values| values[at].to_le_bytes()[..bytes].to_vec())
                        .collect();
                    let work = Work::StoreAsync {
                        to: to[at],
                        data,
                        barrier: barriers[at],
                    };
                    self.touch_work(warp.index, lane, &work)
                        .map_err(|message| Trap::in_lane(lane, message))?;
                    self.enqueue(work, pc)?;
                }
            }
            _ => {
                for lane in lanes(mask) {
                    self.bulk(warp, op, lane, pc)
                        .map_err(|message| Trap::in_lane(lane, message))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn bulk(
        &mut self,
        warp: &mut Warp,
        op: &Op,
        lane: u32,
        pc: usize,
    ) -> Result<(), String> {
        let at = lane as usize;
        let shared_at =
            |engine: &Self, address: &Address| engine.shared_addresses(warp, *address)[at];
        let global_at = |engine: &Self, address: &Address| engine.addresses(warp, *address)[at];
        let word_at = |engine: &Self, word: &Word| engine.words(warp, *word)[at];
        let aligned = |value: u64, what: &str, to: u64| {
            if value.is_multiple_of(to) {
                Ok(())
            } else {
                Err(format!(
                    "misaligned: {what} {value:#x} of a bulk copy is no multiple of {to}"
                ))
            }
        };
        let (work, waits) = match op {
            Op::BulkLoad {
                shared,
                global,
                bytes,
                barrier,
                multicast,
            } => {
                let (to, from, bytes) = (
                    shared_at(self, shared),
                    global_at(self, global),
                    word_at(self, bytes),
                );
                aligned(to.into(), "destination", 16)?;
                aligned(from, "source", 16)?;
                aligned(bytes.into(), "size", 16)?;
                let blocks =
                    multicast.map_or(1 << (to >> 24), |mask| word_at(self, &mask) & 0xffff);
                let barrier = shared_at(self, barrier);
                if multicast.is_none() && barrier >> 24 != to >> 24 {
                    return Err(
                        "a bulk copy's mbarrier is in another block than its data".to_owned()
                    );
                }
                (
                    Work::BulkLoad {
                        to,
                        from,
                        bytes,
                        barrier,
                        blocks,
                    },
                    false,
                )
            }
            Op::BulkShare {
                to,
                from,
                bytes,
                barrier,
            } => {
                let (to, from, bytes) = (
                    shared_at(self, to),
                    shared_at(self, from),
                    word_at(self, bytes),
                );
                aligned(to.into(), "destination", 16)?;
                aligned(from.into(), "source", 16)?;
                aligned(bytes.into(), "size", 16)?;
                (
                    Work::BulkShare {
                        to,
                        from,
                        bytes,
                        barrier: shared_at(self, barrier),
                    },
                    false,
                )
            }
            Op::BulkStore {
                global,
                shared,
                bytes,
            } => {
                let (to, from, bytes) = (
                    global_at(self, global),
                    shared_at(self, shared),
                    word_at(self, bytes),
                );
                aligned(to, "destination", 16)?;
                aligned(from.into(), "source", 16)?;
                aligned(bytes.into(), "size", 16)?;
                (Work::BulkStore { to, from, bytes }, true)
            }
            Op::BulkReduce {
                atomic,
                ty,
                global,
                shared,
                bytes,
            } => {
                let (to, from, bytes) = (
                    global_at(self, global),
                    shared_at(self, shared),
                    word_at(self, bytes),
                );
                aligned(to, "destination", 16)?;
                aligned(from.into(), "source", 16)?;
                aligned(bytes.into(), "size", 16)?;
                (
                    Work::BulkReduce {
                        to,
                        from,
                        bytes,
                        atomic: *atomic,
                        ty: *ty,
                    },
                    true,
                )
            }
            Op::TensorLoad {
                shared,
                map,
                coordinates,
                barrier,
                multicast,
                pair,
            } => {
                let (map, corner) = self.tensor(warp, lane, *map, coordinates)?;
                map.check_copy(corner[0], true)?;
                let (to, barrier) = (shared_at(self, shared), shared_at(self, barrier));
                aligned((to & 0xff_ffff).into(), "destination", 128)?;
                let blocks =
                    multicast.map_or(1 << (to >> 24), |mask| word_at(self, &mask) & 0xffff);
                if multicast.is_none() && !pair && barrier >> 24 != to >> 24 {
                    return Err(
                        "a tensor copy's mbarrier is in another block than its data".to_owned()
                    );
                }
                (
                    Work::TensorLoad {
                        map,
                        at: corner,
                        to,
                        barrier,
                        blocks,
                        pair: *pair,
                    },
                    false,
                )
            }
            Op::TensorStore {
                map,
                coordinates,
                shared,
                reduce,
            } => {
                let (map, corner) = self.tensor(warp, lane, *map, coordinates)?;
                map.check_copy(corner[0], false)?;
                let from = shared_at(self, shared);
                aligned((from & 0xff_ffff).into(), "source", 128)?;
                let reduce = match reduce {
                    Some(atomic) => Some((*atomic, reduced_type(map.kind)?)),
                    None => None,
                };
                (
                    Work::TensorStore {
                        map,
                        at: corner,
                        from,
                        reduce,
                    },
                    true,
                )
            }
            _ => return Err("an instruction that the machine cannot execute".to_owned()),
        };
        self.touch_work(warp.index, lane, &work)?;
        if waits {
            if self.defers(Queue::Stores) {
                warp.outstanding(lane).bulk_open.push(work);
                return Ok(());
            }
            return self.land(&work, self.block as u32);
        }
        self.enqueue(work, pc).map_err(|trap| trap.message)
    }

    pub(super) fn tensor(
        &mut self,
        warp: &Warp,
        lane: u32,
        map: Address,
        coordinates: &[Word],
    ) -> Result<(Box<TensorMap>, [i64; 5]), String> {
        let address = self.addresses(warp, map)[lane as usize];
        if !address.is_multiple_of(64) {
            return Err(format!("misaligned: a tensor map at {address:#x}"));
        }
        let mut bytes = [0; tensor_map::BYTES];
        self.memory.read(&mut self.recent, address, &mut bytes)?;
        let map = TensorMap::decode(&bytes)?;
        if map.sizes.len() != coordinates.len() {
            return Err(format!(
                "{} coordinates for a tensor map of {} dimensions",
                coordinates.len(),
                map.sizes.len()
            ));
        }
        let mut corner = [0; 5];
        for (to, word) in corner.iter_mut().zip(coordinates) {
            *to = i64::from(self.words(warp, *word)[lane as usize] as i32);
        }
        Ok((Box::new(map), corner))
    }
}

fn reduced_type(kind: u32) -> Result<Type, String> {
    Ok(match kind {
        2 => Type::U32,
        3 => Type::S32,
        4 => Type::U64,
        5 => Type::S64,
        6 => Type::F16,
        7 | 8 => Type::F32,
        9 => Type::F64,
        10 => Type::Bf16,
        other => return Err(format!("a reduction of data type {other}")),
    })
}
