//! When asynchronous work lands, and what it then does.

use syntax::Type;

use super::atomic::combine;
use super::signals::signalled;
use super::work::{Copy, Pending, Work};
use super::{Engine, Run};
use crate::error::{Error, Trap};
use crate::launch::{Queue, Timing};
use crate::op::*;
use crate::tensor_map::TensorMap;
use crate::warp::{lanes, Warp};

/// Rounds that random work takes at most.
pub const LONGEST: u32 = 40;

impl Engine<'_> {
    // Whether a thread's own work waits until somebody asks for it.
    pub(super) fn defers(&mut self, queue: Queue) -> bool {
        match self.launch.schedule.timing(queue) {
            Timing::AtOnce => false,
            Timing::Random => self.random.below(3) != 0,
            Timing::Last => true,
        }
    }

    pub(super) fn due(&mut self, queue: Queue) -> u64 {
        match self.launch.schedule.timing(queue) {
            Timing::AtOnce => 0,
            Timing::Random => self.round + u64::from(self.random.below(LONGEST)),
            Timing::Last => u64::MAX,
        }
    }

    pub(super) fn lands_at_once(&self, queue: Queue) -> bool {
        self.launch.schedule.timing(queue) == Timing::AtOnce
    }

    /// Work that takes no time would end a phase of an mbarrier, and the next, before others have looked at the first:
    /// they would wait for a third. Hardware is never so fast, so that work for an mbarrier whose phase has ended waits
    /// until the others have gone as far as they can, or for as long as random work takes.
    pub(super) fn is_hasty(&self, queue: Queue, barriers: impl IntoIterator<Item = u32>) -> bool {
        let turned = |address: u32| {
            let block = self.blocks.get(address as usize >> 24)?;
            block.mbarriers.get(&(address & 0xff_ffff))?.turned
        };
        let hasty =
            |round: u64| round >= self.rested && self.round < round.saturating_add(LONGEST.into());
        self.lands_at_once(queue) && barriers.into_iter().filter_map(turned).any(hasty)
    }

    pub(super) fn enqueue(&mut self, work: Work, pc: usize) -> Run<()> {
        if self.lands_at_once(Queue::Loads) && !self.is_hasty(Queue::Loads, work.signals()) {
            return self.land(&work, self.block as u32).map_err(Trap::new);
        }
        let when = self.due(Queue::Loads);
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
            let pending = &self.queue[at];
            if pending.when <= self.round && !self.is_hasty(Queue::Loads, pending.work.signals()) {
                let pending = self.queue.remove(at);
                self.land_pending(&pending)?;
            } else {
                at += 1;
            }
        }
        for block in 0..self.blocks.len() {
            while self.is_tensor_due(block) {
                self.land_tensor(block)?;
            }
        }
        Ok(())
    }

    /// Whether the time of the first work of a block's tensor core has come.
    pub(super) fn is_tensor_due(&self, block: usize) -> bool {
        let first = self.blocks[block].tensor_queue.front();
        first.is_some_and(|first| {
            let hasty = self.is_hasty(Queue::Products, first.work.signals());
            first.when <= self.round && !hasty
        })
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

    pub(super) fn land_pending(&mut self, pending: &Pending) -> Result<(), Error> {
        self.block = pending.block as usize;
        self.land(&pending.work, pending.block).map_err(|message| {
            self.fault(Trap::new(message), pending.block as usize, None, pending.pc)
        })
    }

    pub(super) fn arrive(&mut self, address: u32) -> Result<(), String> {
        self.progress += 1;
        self.change_mbarrier(address, |barrier| barrier.arrive(1))
    }

    pub(super) fn complete_bytes(&mut self, address: u32, bytes: u32) -> Result<(), String> {
        self.progress += 1;
        self.change_mbarrier(address, |barrier| barrier.expect_bytes(-i64::from(bytes)))
    }

    pub(super) fn land(&mut self, work: &Work, block: u32) -> Result<(), String> {
        self.progress += 1;
        match work {
            Work::BulkLoad {
                to,
                from,
                bytes,
                barrier,
                blocks,
            } => {
                self.tally().moved("bulk load", (*bytes).into());
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
                self.tally()
                    .moved("bulk copy between blocks", (*bytes).into());
                let data = self.shared(*from, *bytes)?.to_vec();
                self.shared(*to, *bytes)?.copy_from_slice(&data);
                self.complete_bytes(*barrier, *bytes)
            }
            Work::BulkStore { to, from, bytes } => {
                self.tally().moved("bulk store", (*bytes).into());
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
                self.tally().moved("bulk store", (*bytes).into());
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
                started,
                view,
            } => {
                let warp = &mut self.blocks[block as usize].warps[*warp as usize];
                let own = warp.outstanding(*lane);
                // Since then the thread may have waited for some, committed others and started more.
                let mut copies: Vec<Copy> = Vec::new();
                for group in own.groups.iter_mut().chain([&mut own.open]) {
                    let until = group.partition_point(|copy| copy.number < *started);
                    copies.extend(group.drain(..until));
                }
                for copy in copies {
                    self.copy(copy)?;
                }
                self.arrive_with(*barrier, view.as_deref());
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
                self.tally().moved("tensor load", map.box_bytes().into());
                self.load_box(map, at, *to, *blocks)?;
                for rank in lanes(*blocks) {
                    let owner = signalled(rank, *barrier, *pair);
                    self.complete_bytes(owner << 24 | barrier & 0xff_ffff, map.box_bytes())?;
                }
                Ok(())
            }
            Work::TensorStore {
                map,
                at,
                from,
                reduce,
            } => {
                self.tally().moved("tensor store", map.box_bytes().into());
                self.store_box(map, at, *from, *reduce)
            }
        }
    }

    pub(super) fn reduce(
        &mut self,
        to: u64,
        data: &[u8],
        atomic: Atomic,
        ty: Type,
    ) -> Result<(), String> {
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

    pub(super) fn load_box(
        &mut self,
        map: &TensorMap,
        at: &[i64; 5],
        to: u32,
        blocks: u32,
    ) -> Result<(), String> {
        let outside = if map.fills_nan { 0xff } else { 0 };
        let mut packed = vec![0u8; map.packed_row_bytes() as usize];
        let mut is_outside = true;
        for number in 0..map.rows() {
            packed.fill(outside);
            if let Some((address, skip, bytes)) = map.span(at, number) {
                is_outside = false;
                let inside = &mut packed[skip..skip + bytes];
                self.memory.read(&mut self.recent, address, inside)?;
            }
            let row = map.spread(&packed);
            let start = (to & 0xff_ffff) + number * map.row_bytes();
            for (chunk, part) in row.chunks(16).enumerate() {
                let offset = map.swizzled(start + chunk as u32 * 16);
                for rank in lanes(blocks) {
                    self.shared(rank << 24 | offset, part.len() as u32)?
                        .copy_from_slice(part);
                }
            }
        }
        if is_outside {
            let read = self.memory.read(&mut self.recent, map.address, &mut [0]);
            read.map_err(|error| {
                format!(
                    "a box wholly outside of its tensor, of which an H200 reads where the tensor map begins: {error}"
                )
            })?;
        }
        Ok(())
    }

    pub(super) fn store_box(
        &mut self,
        map: &TensorMap,
        at: &[i64; 5],
        from: u32,
        reduce: Option<(Atomic, Type)>,
    ) -> Result<(), String> {
        let mut row = vec![0u8; map.row_bytes() as usize];
        for number in 0..map.rows() {
            let Some((address, skip, bytes)) = map.span(at, number) else {
                continue;
            };
            let start = (from & 0xff_ffff) + number * map.row_bytes();
            for (chunk, part) in row.chunks_mut(16).enumerate() {
                let offset = map.swizzled(start + chunk as u32 * 16);
                part.copy_from_slice(self.shared(from & 0xff00_0000 | offset, part.len() as u32)?);
            }
            let packed = map.pack(&row);
            let inside = &packed[skip..skip + bytes];
            match reduce {
                Some((atomic, ty)) => self.reduce(address, inside, atomic, ty)?,
                None => self.memory.write(&mut self.recent, address, inside)?,
            }
        }
        Ok(())
    }

    pub(super) fn copy(&mut self, copy: Copy) -> Result<(), String> {
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

    pub(super) fn finish_copies(&mut self, warp: &mut Warp, lane: u32, left: usize) -> Run<()> {
        while warp.outstanding(lane).groups.len() > left {
            for copy in warp
                .outstanding(lane)
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

    pub(super) fn finish_bulk(&mut self, warp: &mut Warp, lane: u32, left: usize) -> Run<()> {
        while warp.outstanding(lane).bulk_groups.len() > left {
            for work in warp
                .outstanding(lane)
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
        if !warp.has_outstanding() {
            return Ok(());
        }
        for lane in lanes(mask) {
            let own = warp.outstanding(lane);
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
