//! Copies that threads start and do not wait for: when they land is the schedule's choice.

use syntax::Type;

use super::shared::combine;
use super::work::{Copy, Pending, Work};
use super::{Engine, Run};
use crate::error::{Error, Trap};
use crate::launch::Schedule;
use crate::op::*;
use crate::tensor_map::{self, TensorMap};
use crate::warp::{lanes, Warp};

/// Rounds that random work takes at most.
pub const LONGEST: u32 = 40;

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
                    let copy = Copy {
                        to: to[at],
                        from: from[at],
                        bytes: *bytes,
                        source_bytes,
                    };
                    Self::check_alignment(lane, copy.to.into(), *bytes)?;
                    Self::check_alignment(lane, copy.from, *bytes)?;
                    if self.defers() {
                        warp.outstanding[at].open.push(copy);
                    } else {
                        self.copy(copy)
                            .map_err(|message| Trap::in_lane(lane, message))?;
                    }
                }
            }
            Op::CopyCommit => {
                for lane in lanes(mask) {
                    let own = &mut warp.outstanding[lane as usize];
                    let group = std::mem::take(&mut own.open);
                    own.groups.push_back(group);
                }
            }
            Op::CopyWait(left) => {
                for lane in lanes(mask) {
                    self.finish_copies(warp, lane, *left as usize)?;
                }
            }
            Op::CopyWaitAll => {
                for lane in lanes(mask) {
                    let own = &mut warp.outstanding[lane as usize];
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
                    let own = &warp.outstanding[lane as usize];
                    let work = Work::CopyArrive {
                        warp: warp.index,
                        lane,
                        barrier: addresses[lane as usize],
                        groups: own.groups.len(),
                        open: own.open.len(),
                    };
                    if self.launch.schedule == Schedule::AtOnce {
                        self.arrive(addresses[lane as usize]).map_err(failed)?;
                    } else {
                        self.enqueue(work, pc)?;
                    }
                }
            }
            Op::BulkCommit => {
                for lane in lanes(mask) {
                    let own = &mut warp.outstanding[lane as usize];
                    let group = std::mem::take(&mut own.bulk_open);
                    own.bulk_groups.push_back(group);
                }
            }
            Op::BulkWait(groups) => {
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
                    self.enqueue(
                        Work::StoreAsync {
                            to: to[at],
                            data,
                            barrier: barriers[at],
                        },
                        pc,
                    )?;
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

    fn bulk(&mut self, warp: &mut Warp, op: &Op, lane: u32, pc: usize) -> Result<(), String> {
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
        if waits {
            if self.defers() {
                warp.outstanding[at].bulk_open.push(work);
                return Ok(());
            }
            return self.land(&work, self.block as u32);
        }
        self.enqueue(work, pc).map_err(|trap| trap.message)
    }

    fn tensor(
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

    // Whether a thread's own copy waits until somebody asks for it.
    pub(super) fn defers(&mut self) -> bool {
        match self.launch.schedule {
            Schedule::AtOnce => false,
            Schedule::Random { .. } => self.random.below(3) != 0,
            Schedule::Late { .. } => true,
        }
    }

    pub(super) fn due(&mut self) -> u64 {
        match self.launch.schedule {
            Schedule::AtOnce => 0,
            Schedule::Random { .. } => self.round + u64::from(self.random.below(LONGEST)),
            Schedule::Late { .. } => u64::MAX,
        }
    }

    fn enqueue(&mut self, work: Work, pc: usize) -> Run<()> {
        if self.launch.schedule == Schedule::AtOnce {
            return self.land(&work, self.block as u32).map_err(Trap::new);
        }
        let when = self.due();
        self.queue.push(Pending {
            work,
            when,
            pc,
            block: self.block as u32,
        });
        Ok(())
    }

    /// Lets work land whose time has come.
    pub(super) fn drain(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.queue.len() {
            if self.queue[at].when <= self.round {
                let pending = self.queue.remove(at);
                self.land_pending(&pending)?;
            } else {
                at += 1;
            }
        }
        for block in 0..self.blocks.len() {
            while self.blocks[block]
                .tensor_queue
                .front()
                .is_some_and(|work| work.when <= self.round)
            {
                self.land_tensor(block)?;
            }
        }
        Ok(())
    }

    /// Lets one piece of work land before its time; false where there is none.
    pub(super) fn force(&mut self) -> Result<bool, Error> {
        let tensors: Vec<usize> = (0..self.blocks.len())
            .filter(|block| !self.blocks[*block].tensor_queue.is_empty())
            .collect();
        let choices = self.queue.len() + tensors.len();
        if choices == 0 {
            return Ok(false);
        }
        let choice = self.random.below(choices as u32) as usize;
        if choice < self.queue.len() {
            let pending = self.queue.remove(choice);
            self.land_pending(&pending)?;
        } else {
            self.land_tensor(tensors[choice - self.queue.len()])?;
        }
        Ok(true)
    }

    fn land_pending(&mut self, pending: &Pending) -> Result<(), Error> {
        self.block = pending.block as usize;
        self.land(&pending.work, pending.block).map_err(|message| {
            self.fault(Trap::new(message), pending.block as usize, None, pending.pc)
        })
    }

    fn arrive(&mut self, address: u32) -> Result<(), String> {
        self.progress += 1;
        self.mbarrier(address)?.arrive(1)
    }

    fn complete_bytes(&mut self, address: u32, bytes: u32) -> Result<(), String> {
        self.progress += 1;
        self.mbarrier(address)?.expect_bytes(-i64::from(bytes))
    }

    pub(super) fn arrive_at(&mut self, address: u32) -> Result<(), String> {
        self.arrive(address)
    }

    fn land(&mut self, work: &Work, block: u32) -> Result<(), String> {
        self.progress += 1;
        match work {
            Work::BulkLoad {
                to,
                from,
                bytes,
                barrier,
                blocks,
            } => {
                let mut data = vec![0; *bytes as usize];
                self.memory.read(&mut self.recent, *from, &mut data)?;
                for rank in lanes(*blocks) {
                    self.shared(rank << 24 | to & 0xff_ffff, *bytes)?
                        .copy_from_slice(&data);
                    self.complete_bytes(rank << 24 | barrier & 0xff_ffff, *bytes)?;
                }
                Ok(())
            }
            Work::BulkShare {
                to,
                from,
                bytes,
                barrier,
            } => {
                let data = self.shared(*from, *bytes)?.to_vec();
                self.shared(*to, *bytes)?.copy_from_slice(&data);
                self.complete_bytes(*barrier, *bytes)
            }
            Work::BulkStore { to, from, bytes } => {
                let data = self.shared(*from, *bytes)?.to_vec();
                self.memory.write(&mut self.recent, *to, &data)
            }
            Work::BulkReduce {
                to,
                from,
                bytes,
                atomic,
                ty,
            } => {
                let data = self.shared(*from, *bytes)?.to_vec();
                self.reduce(*to, &data, *atomic, *ty)
            }
            Work::StoreAsync { to, data, barrier } => {
                self.shared(*to, data.len() as u32)?.copy_from_slice(data);
                self.complete_bytes(*barrier, data.len() as u32)
            }
            Work::CopyArrive {
                warp,
                lane,
                barrier,
                groups,
                open,
            } => {
                let own = &mut self.blocks[block as usize].warps[*warp as usize].outstanding
                    [*lane as usize];
                // What the thread has waited for since then is gone from the front.
                let mut copies: Vec<Copy> = Vec::new();
                for group in own.groups.iter_mut().take(*groups) {
                    copies.append(group);
                }
                copies.extend(own.open.drain(..(*open).min(own.open.len())));
                for copy in copies {
                    self.copy(copy)?;
                }
                self.arrive(*barrier)
            }
            Work::TensorLoad {
                map,
                at,
                to,
                barrier,
                blocks,
                pair,
            } => {
                self.load_box(map, at, *to, *blocks)?;
                for rank in lanes(*blocks) {
                    let owner = if *pair {
                        rank & !1 | barrier >> 24 & 1
                    } else {
                        rank
                    };
                    self.complete_bytes(owner << 24 | barrier & 0xff_ffff, map.box_bytes())?;
                }
                Ok(())
            }
            Work::TensorStore {
                map,
                at,
                from,
                reduce,
            } => self.store_box(map, at, *from, *reduce),
        }
    }

    fn reduce(&mut self, to: u64, data: &[u8], atomic: Atomic, ty: Type) -> Result<(), String> {
        let bytes = ty.bytes();
        for (at, part) in data.chunks_exact(bytes as usize).enumerate() {
            let mut value = [0; 8];
            value[..bytes as usize].copy_from_slice(part);
            let value = u64::from_le_bytes(value);
            let address = to + at as u64 * u64::from(bytes);
            self.memory
                .update(&mut self.recent, address, bytes, |old| {
                    combine(atomic, ty, old, value, 0)
                })?;
        }
        Ok(())
    }

    fn load_box(
        &mut self,
        map: &TensorMap,
        at: &[i64; 5],
        to: u32,
        blocks: u32,
    ) -> Result<(), String> {
        let row_bytes = map.box_sizes[0] * map.element_bytes();
        let outside = if map.fills_nan { 0xff } else { 0 };
        let mut row = vec![0u8; row_bytes as usize];
        for number in 0..map.box_sizes[1..].iter().product::<u32>() {
            row.fill(outside);
            if let Some((address, skip, bytes)) = span(map, at, number) {
                self.memory
                    .read(&mut self.recent, address, &mut row[skip..skip + bytes])?;
            }
            for (chunk, part) in row.chunks(16).enumerate() {
                let offset =
                    map.swizzled((to & 0xff_ffff) + number * row_bytes + chunk as u32 * 16);
                for rank in lanes(blocks) {
                    self.shared(rank << 24 | offset, part.len() as u32)?
                        .copy_from_slice(part);
                }
            }
        }
        Ok(())
    }

    fn store_box(
        &mut self,
        map: &TensorMap,
        at: &[i64; 5],
        from: u32,
        reduce: Option<(Atomic, Type)>,
    ) -> Result<(), String> {
        let row_bytes = map.box_sizes[0] * map.element_bytes();
        let mut row = vec![0u8; row_bytes as usize];
        for number in 0..map.box_sizes[1..].iter().product::<u32>() {
            let Some((address, skip, bytes)) = span(map, at, number) else {
                continue;
            };
            for (chunk, part) in row.chunks_mut(16).enumerate() {
                let offset =
                    map.swizzled((from & 0xff_ffff) + number * row_bytes + chunk as u32 * 16);
                part.copy_from_slice(self.shared(from & 0xff00_0000 | offset, part.len() as u32)?);
            }
            match reduce {
                Some((atomic, ty)) => self.reduce(address, &row[skip..skip + bytes], atomic, ty)?,
                None => self
                    .memory
                    .write(&mut self.recent, address, &row[skip..skip + bytes])?,
            }
        }
        Ok(())
    }

    fn copy(&mut self, copy: Copy) -> Result<(), String> {
        let mut data = [0; 16];
        if copy.source_bytes > 0 {
            self.memory.read(
                &mut self.recent,
                copy.from,
                &mut data[..copy.source_bytes as usize],
            )?;
        }
        self.shared(copy.to, copy.bytes)?
            .copy_from_slice(&data[..copy.bytes as usize]);
        Ok(())
    }

    fn finish_copies(&mut self, warp: &mut Warp, lane: u32, left: usize) -> Run<()> {
        while warp.outstanding[lane as usize].groups.len() > left {
            for copy in warp.outstanding[lane as usize]
                .groups
                .pop_front()
                .unwrap_or_default()
            {
                self.copy(copy)
                    .map_err(|message| Trap::in_lane(lane, message))?;
            }
        }
        Ok(())
    }

    fn finish_bulk(&mut self, warp: &mut Warp, lane: u32, left: usize) -> Run<()> {
        while warp.outstanding[lane as usize].bulk_groups.len() > left {
            for work in warp.outstanding[lane as usize]
                .bulk_groups
                .pop_front()
                .unwrap_or_default()
            {
                self.land(&work, self.block as u32)
                    .map_err(|message| Trap::in_lane(lane, message))?;
            }
        }
        Ok(())
    }

    /// What is under way when threads end lands then.
    pub(super) fn settle(&mut self, warp: &mut Warp, mask: u32) -> Run<()> {
        for lane in lanes(mask) {
            let own = &mut warp.outstanding[lane as usize];
            let (copies, bulk) = (
                std::mem::take(&mut own.open),
                std::mem::take(&mut own.bulk_open),
            );
            own.groups.push_back(copies);
            own.bulk_groups.push_back(bulk);
            self.finish_copies(warp, lane, 0)?;
            self.finish_bulk(warp, lane, 0)?;
        }
        Ok(())
    }
}

// The part of a box's row inside the tensor: where it begins, bytes to skip in the row, bytes.
fn span(map: &TensorMap, at: &[i64; 5], number: u32) -> Option<(u64, usize, usize)> {
    let mut rest = number;
    let mut address = map.address;
    let outer = at.iter().zip(&map.box_sizes).zip(&map.sizes).skip(1);
    for (((corner, box_size), size), stride) in outer.zip(&map.strides) {
        let position = corner + i64::from(rest % box_size);
        rest /= box_size;
        if position < 0 || position >= *size as i64 {
            return None;
        }
        address = address.wrapping_add((position as u64).wrapping_mul(*stride));
    }
    let element = i64::from(map.element_bytes());
    let first = at[0].max(0);
    let end = (at[0] + i64::from(map.box_sizes[0])).min(map.sizes[0] as i64);
    (first < end).then(|| {
        (
            address.wrapping_add((first * element) as u64),
            ((first - at[0]) * element) as usize,
            ((end - first) * element) as usize,
        )
    })
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
