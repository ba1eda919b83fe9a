//! What the race detector is told of: accesses of shared memory, and what orders them.

use super::signals::signalled;
use super::work::Work;
use super::{Engine, Run};
use crate::descriptor::Descriptor;
use crate::error::Trap;
use crate::launch::Watch;
use crate::mbarrier::Mbarrier;
use crate::op::{Scope, Wgmma, Words};
use crate::race::{By, View};
use crate::tensor_map::TensorMap;
use crate::warp::{lanes, Group, Wait, Warp};

/// What an access does to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    Write,
    Both,
}

impl Engine<'_> {
    #[inline(always)]
    pub(super) fn touch_global(
        &mut self,
        (warp, mask): (u32, u32),
        range: (u64, u32),
        by: By,
        touch: Touch,
    ) -> Result<(), String> {
        match &mut self.races {
            Some(races) if range.1 > 0 => races.touch_global(
                self.program,
                (self.block, warp, mask),
                range,
                by,
                (self.pc, touch != Touch::Read, touch != Touch::Write),
            ),
            _ => Ok(()),
        }
    }

    /// The rows of a box inside of its tensor.
    fn touch_tensor_rows(
        &mut self,
        who: (u32, u32),
        (map, at): (&TensorMap, &[i64; 5]),
        by: By,
        touch: Touch,
    ) -> Result<(), String> {
        if self.races.is_none() {
            return Ok(());
        }
        for number in 0..map.rows() {
            if let Some((address, _, bytes)) = map.span(at, number) {
                self.touch_global(who, (address, bytes as u32), by, touch)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn touch(
        &mut self,
        warp: u32,
        mask: u32,
        range: (u32, u32),
        by: By,
        writes: bool,
    ) -> Result<(), String> {
        match &mut self.races {
            None => Ok(()),
            Some(_)
                if self
                    .blocks
                    .get(range.0 as usize >> 24)
                    .is_some_and(|block| block.live == 0) =>
            {
                Err(format!(
                    "shared memory of block {} of the cluster, which has ended",
                    range.0 >> 24
                ))
            }
            Some(races) => races.touch(
                self.program,
                (self.block, warp, mask),
                range,
                by,
                (self.pc, writes),
            ),
        }?;
        if writes && self.races.is_some() {
            self.overwrite(range);
        }
        Ok(())
    }

    /// What was an mbarrier there is none any more.
    fn overwrite(&mut self, (address, bytes): (u32, u32)) {
        const BYTES: u32 = 8;
        let Some(block) = self.blocks.get_mut(address as usize >> 24) else {
            return;
        };
        let start = address & 0xff_ffff;
        let touched = (start + 1).saturating_sub(BYTES)..start + bytes;
        while let Some((at, _)) = block.mbarriers.range(touched.clone()).next() {
            let at = *at;
            block.mbarriers.remove(&at);
        }
    }

    pub(super) fn touch_box(
        &mut self,
        warp: u32,
        lane: u32,
        (map, address): (&TensorMap, u32),
        by: By,
        writes: bool,
    ) -> Result<(), String> {
        if self.races.is_none() {
            return Ok(());
        }
        let bytes = map.room_bytes();
        // A swizzle moves chunks inside of 128 bytes.
        if bytes.is_multiple_of(128) {
            return self.touch(warp, 1 << lane, (address, bytes), by, writes);
        }
        for start in (0..bytes).step_by(16) {
            let at = address & 0xff00_0000 | map.swizzled((address & 0xff_ffff) + start);
            self.touch(warp, 1 << lane, (at, 16.min(bytes - start)), by, writes)?;
        }
        Ok(())
    }

    /// Chunks of 16 bytes that an operand is read from: `rows` by `bytes` along the contiguous dimension.
    pub(super) fn touch_operand(
        &mut self,
        (warp, mask): (u32, u32),
        rank: usize,
        descriptor: Descriptor,
        (first, rows, bytes): (u32, u32, u32),
        depth_if_rows_contiguous: Option<u32>,
        by: By,
    ) -> Result<(), String> {
        let base = (rank as u32) << 24;
        let (outer, start, inner) = match depth_if_rows_contiguous {
            // Rows and depth change places.
            Some(depth) => (0..depth, first, rows),
            None => (first..first + rows, 0, bytes),
        };
        for row in outer {
            for byte in (start..start + inner).step_by(16) {
                let address = match depth_if_rows_contiguous {
                    Some(_) => descriptor.along_rows(byte, row),
                    None => descriptor.along_depth(row, byte),
                };
                self.touch(warp, mask, (base | address, 16), by, false)?;
            }
        }
        Ok(())
    }

    /// The operands of a warp's quarter of a wgmma.
    pub(super) fn touch_product(
        &mut self,
        warp: &Warp,
        op: &Wgmma,
        a: Option<u64>,
        b: u64,
    ) -> Result<(), String> {
        if self.races.is_none() {
            return Ok(());
        }
        let who = (warp.index, u32::MAX);
        let operand = |transposed: bool, (first, rows): (u32, u32), bits: u32| {
            let bytes = bits / 8;
            if transposed {
                ((first * bytes, rows * bytes, 0), Some(op.depth))
            } else {
                ((first, rows, op.depth * bytes), None)
            }
        };
        if let Some(a) = a {
            let first = warp.index % 4 * 16;
            let rows = match self.launch.races {
                Watch::AllButRowsFrom(row) => row.saturating_sub(first).min(16),
                _ => 16,
            };
            let (shape, depth) = operand(op.a_transposed, (first, rows), op.a_type.bits());
            let descriptor = Descriptor::hopper(a)?;
            self.touch_operand(who, self.block, descriptor, shape, depth, By::Product)?;
        }
        let (shape, depth) = operand(op.b_transposed, (0, op.columns), op.b_type.bits());
        let descriptor = Descriptor::hopper(b)?;
        self.touch_operand(who, self.block, descriptor, shape, depth, By::Product)
    }

    /// A wait of a group has ended.
    pub(super) fn pass(&mut self, warp: u32, group: &Group) {
        let Some(races) = &mut self.races else { return };
        match group.wait {
            Wait::Barrier { id, .. } => {
                races.pass_named(self.block, warp, group.mask, id as usize);
            }
            Wait::Cluster { .. } => races.pass_cluster(self.block, warp, group.mask),
            _ => {}
        }
    }

    /// Changes an mbarrier; its phase may end by that.
    pub(super) fn change_mbarrier(
        &mut self,
        address: u32,
        change: impl FnOnce(&mut Mbarrier) -> Result<(), String>,
    ) -> Result<(), String> {
        let round = self.round;
        let barrier = self.mbarrier(address)?;
        let before = barrier.phase;
        change(barrier)?;
        if barrier.phase != before {
            barrier.turned = Some(round);
            if let Some(races) = &mut self.races {
                races.complete_mbarrier(address);
            }
        }
        Ok(())
    }

    pub(super) fn check_mbarrier(
        &self,
        warp: u32,
        mask: u32,
        address: u32,
        asynchronous: bool,
    ) -> Result<(), String> {
        match &self.races {
            None => Ok(()),
            Some(races) => races.check_mbarrier(
                self.program,
                (self.block, warp, mask),
                address,
                asynchronous,
            ),
        }
    }

    /// Lanes arrive at mbarriers: what they did is seen by who waits there.
    pub(super) fn release_to(
        &mut self,
        warp: u32,
        mask: u32,
        addresses: &Words,
        relaxed: bool,
    ) -> Run<()> {
        if self.races.is_none() {
            return Ok(());
        }
        for (address, same) in by_address(mask, addresses) {
            self.check_mbarrier(warp, same, address, false)
                .map_err(|message| Trap::in_lane(same.trailing_zeros(), message))?;
            if let Some(races) = &mut self.races {
                let mut view = races.release(self.block, warp, same);
                if relaxed {
                    view.forget_stores();
                }
                races.arrive_mbarrier(address, &view);
            }
        }
        Ok(())
    }

    /// Lanes ask for a phase; those of `over` find it complete.
    pub(super) fn observe(
        &mut self,
        warp: u32,
        (mask, over): (u32, u32),
        addresses: &Words,
        relaxed: bool,
    ) -> Run<()> {
        if self.races.is_none() {
            return Ok(());
        }
        for (address, same) in by_address(mask, addresses) {
            self.check_mbarrier(warp, same, address, false)
                .map_err(|message| Trap::in_lane(same.trailing_zeros(), message))?;
            if let Some(races) = self.races.as_mut().filter(|_| same & over != 0) {
                races.pass_mbarrier(self.block, warp, same & over, address, relaxed);
            }
        }
        Ok(())
    }

    /// What bulk work will touch, and the mbarriers that it will signal.
    pub(super) fn touch_work(&mut self, warp: u32, lane: u32, work: &Work) -> Result<(), String> {
        if self.races.is_none() {
            return Ok(());
        }
        let mask = 1 << lane;
        let who = (warp, mask);
        let there = |rank: u32, address: u32| rank << 24 | address & 0xff_ffff;
        match work {
            Work::BulkLoad {
                to,
                from,
                bytes,
                barrier,
                blocks,
            } => {
                for rank in lanes(*blocks) {
                    let barrier = there(rank, *barrier);
                    self.check_mbarrier(warp, mask, barrier, true)?;
                    let range = (there(rank, *to), *bytes);
                    let by = By::bulk_load(barrier);
                    self.touch_global(who, (*from, *bytes), by, Touch::Read)?;
                    self.touch(warp, mask, range, by, true)?;
                }
                Ok(())
            }
            Work::TensorLoad {
                map,
                at,
                to,
                barrier,
                blocks,
                pair,
            } => {
                for rank in lanes(*blocks) {
                    let barrier = there(signalled(rank, *barrier, *pair), *barrier);
                    self.check_mbarrier(warp, mask, barrier, true)?;
                    let (to, by) = (there(rank, *to), By::bulk_load(barrier));
                    self.touch_tensor_rows(who, (map, at), by, Touch::Read)?;
                    self.touch_box(warp, lane, (map, to), by, true)?;
                }
                Ok(())
            }
            Work::BulkShare {
                to,
                from,
                bytes,
                barrier,
            } => {
                self.check_mbarrier(warp, mask, *barrier, true)?;
                let by = By::bulk_load(*barrier);
                self.touch(warp, mask, (*from, *bytes), by, false)?;
                self.touch(warp, mask, (*to, *bytes), by, true)
            }
            Work::StoreAsync { to, data, barrier } => {
                self.check_mbarrier(warp, mask, *barrier, true)?;
                let range = (*to, data.len() as u32);
                self.touch(warp, mask, range, By::store_async(*barrier), true)
            }
            Work::BulkStore { to, from, bytes } => {
                let by = By::BulkWrite(Scope::Weak);
                self.touch_global(who, (*to, *bytes), by, Touch::Write)?;
                self.touch(warp, mask, (*from, *bytes), By::Bulk, false)
            }
            Work::BulkReduce {
                to, from, bytes, ..
            } => {
                let by = By::BulkWrite(Scope::Device);
                self.touch_global(who, (*to, *bytes), by, Touch::Write)?;
                self.touch(warp, mask, (*from, *bytes), By::Bulk, false)
            }
            Work::TensorStore {
                map,
                at,
                from,
                reduce,
            } => {
                let scope = reduce.map_or(Scope::Weak, |_| Scope::Device);
                let by = By::BulkWrite(scope);
                self.touch_tensor_rows(who, (map, at), by, Touch::Write)?;
                self.touch_box(warp, lane, (map, *from), By::Bulk, false)
            }
            Work::CopyArrive { barrier, .. } => self.check_mbarrier(warp, mask, *barrier, true),
        }
    }

    pub(super) fn arrive_with(&mut self, address: u32, view: Option<&View>) {
        if let (Some(races), Some(view)) = (&mut self.races, view) {
            races.arrive_mbarrier(address, view);
        }
    }
}

/// Lanes that name the same address, together.
fn by_address(mask: u32, addresses: &Words) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let mut left = mask;
    while left != 0 {
        let address = addresses[left.trailing_zeros() as usize];
        let same = lanes(left)
            .filter(|lane| addresses[*lane as usize] == address)
            .fold(0, |same, lane| same | 1 << lane);
        found.push((address, same));
        left &= !same;
    }
    found
}
