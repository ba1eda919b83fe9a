//! Tensor maps that kernels change and publish themselves.

use super::ordering::Touch;
use super::shared::{locate, Location};
use super::{Engine, Run};
use crate::error::Trap;
use crate::op::*;
use crate::race::By;
use crate::tensor_map::BYTES;
use crate::warp::{lanes, Warp};

const SIZE: u32 = BYTES as u32;

impl Engine<'_> {
    pub(super) fn replace_field(
        &mut self,
        warp: &Warp,
        mask: u32,
        (field, ordinal): (MapField, u32),
        (space, address, value): (Space, Address, Value),
    ) -> Run<()> {
        let (addresses, values) = (self.addresses(warp, address), self.values(warp, value));
        for lane in lanes(mask) {
            let at = locate(space, addresses[lane as usize]);
            self.change_map(warp.index, lane, at, |map| {
                field.write(map, ordinal, values[lane as usize])
            })
            .map_err(|message| Trap::in_lane(lane, message))?;
        }
        Ok(())
    }

    fn change_map(
        &mut self,
        warp: u32,
        lane: u32,
        at: Location,
        change: impl FnOnce(&mut [u8; BYTES]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut map = [0; BYTES];
        match at {
            Location::Shared(address) => {
                self.touch(warp, 1 << lane, (address, SIZE), By::WEAK, true)?;
                map.copy_from_slice(self.shared(address, SIZE)?);
                change(&mut map)?;
                self.shared(address, SIZE)?.copy_from_slice(&map);
            }
            Location::Global(address) => {
                self.touch_global((warp, 1 << lane), (address, SIZE), By::WEAK, Touch::Both)?;
                self.memory.read(&mut self.recent, address, &mut map)?;
                change(&mut map)?;
                self.memory.write(&mut self.recent, address, &map)?;
            }
            Location::Local(_) => return Err("a tensor map in local memory".to_owned()),
        }
        Ok(())
    }

    /// A warp copies a map from shared to global memory.
    pub(super) fn publish_map(
        &mut self,
        warp: &Warp,
        mask: u32,
        (to, from): (Address, Address),
    ) -> Run<()> {
        let lane = mask.trailing_zeros();
        let (to, from) = (
            self.addresses(warp, to)[lane as usize],
            self.shared_addresses(warp, from)[lane as usize],
        );
        Self::check_alignment(lane, to, SIZE)?;
        Self::check_alignment(lane, from.into(), SIZE)?;
        let copied = self
            .touch(warp.index, mask, (from, SIZE), By::WEAK, false)
            .and_then(|()| {
                self.touch_global((warp.index, mask), (to, SIZE), By::WEAK, Touch::Write)
            })
            .and_then(|()| Ok(self.shared(from, SIZE)?.to_vec()))
            .and_then(|map| self.memory.write(&mut self.recent, to, &map));
        copied.map_err(|message| Trap::in_lane(lane, message))
    }
}
