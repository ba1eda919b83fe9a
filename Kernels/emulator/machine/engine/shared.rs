//! Addresses, and the memory behind them.

use super::ordering::Touch;
use super::{Engine, Run};
use crate::error::Trap;
use crate::op::*;
use crate::race::By;
use crate::warp::{lanes, Warp};

/// Where generic addresses of shared and local memory begin: no process has memory there.
pub const SHARED_WINDOW: u64 = 0xA000_0000_0000_0000;
pub const LOCAL_WINDOW: u64 = 0xB000_0000_0000_0000;
const WINDOW: u64 = 0xF000_0000_0000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Global(u64),
    /// With the block's rank in the upper byte.
    Shared(u32),
    Local(u32),
}

pub fn locate(space: Space, address: u64) -> Location {
    match space {
        Space::Global => Location::Global(address),
        Space::Shared => Location::Shared(address as u32),
        Space::Local => Location::Local(address as u32),
        Space::Generic => match address & WINDOW {
            SHARED_WINDOW => Location::Shared(address as u32),
            LOCAL_WINDOW => Location::Local(address as u32),
            _ => Location::Global(address),
        },
    }
}

impl Engine<'_> {
    fn own_shared(&self, offset: u32) -> u32 {
        (self.block as u32) << 24 | offset
    }

    #[inline(always)]
    pub fn words(&self, warp: &Warp, word: Word) -> Words {
        match word {
            Word::Register(number) => warp.words[number as usize],
            Word::Immediate(value) => [value; LANES],
            Word::Shared(offset) => [self.own_shared(offset); LANES],
        }
    }

    #[inline(always)]
    pub fn wides(&self, warp: &Warp, wide: Wide) -> Wides {
        match wide {
            Wide::Register(number) => warp.wides[number as usize],
            Wide::Immediate(value) => [value; LANES],
            Wide::Parameter(offset) => [self.parameter_address + u64::from(offset); LANES],
            Wide::Shared(offset) => [u64::from(self.own_shared(offset)); LANES],
        }
    }

    pub fn values(&self, warp: &Warp, value: Value) -> Wides {
        match value {
            Value::Word(word) => self.words(warp, word).map(u64::from),
            Value::Wide(wide) => self.wides(warp, wide),
            Value::Bit(bit) => {
                let bits = warp.bit(bit);
                std::array::from_fn(|lane| u64::from(bits >> lane & 1))
            }
        }
    }

    pub fn addresses(&self, warp: &Warp, address: Address) -> Wides {
        match address.base {
            // Addresses of 32 bits wrap in 32 bits.
            Value::Word(word) => self
                .words(warp, word)
                .map(|base| u64::from(base.wrapping_add(address.offset as u32))),
            other => self
                .values(warp, other)
                .map(|base| base.wrapping_add(address.offset as u64)),
        }
    }

    /// An address in shared memory, whichever way it is written.
    pub fn shared_addresses(&self, warp: &Warp, address: Address) -> Words {
        self.addresses(warp, address).map(|address| address as u32)
    }

    pub fn shared(&mut self, address: u32, bytes: u32) -> Result<&mut [u8], String> {
        let (rank, offset) = (address >> 24, (address & 0xff_ffff) as usize);
        let ranks = self.blocks.len();
        let Some(block) = self.blocks.get_mut(rank as usize) else {
            return Err(format!(
                "shared memory of block {rank} in a cluster of {ranks}"
            ));
        };
        let size = block.shared.len();
        let reserved = crate::program::RESERVED_SHARED as usize;
        if offset < reserved || offset + bytes as usize > size {
            return Err(format!(
                "out of bounds: {bytes} bytes at {} of {} bytes of shared memory",
                offset as i64 - reserved as i64,
                size - reserved
            ));
        }
        Ok(&mut block.shared[offset..offset + bytes as usize])
    }

    pub fn check_alignment(lane: u32, address: u64, bytes: u32) -> Run<()> {
        if address.is_multiple_of(u64::from(bytes)) {
            return Ok(());
        }
        Err(Trap::in_lane(
            lane,
            format!("misaligned: an access of {bytes} bytes at {address:#x}"),
        ))
    }

    fn local<'w>(
        &self,
        warp: &'w mut Warp,
        lane: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<&'w mut [u8], String> {
        let size = self.program.local_bytes;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(format!(
                "out of bounds: {bytes} bytes at {offset} of {size} bytes of local memory"
            ));
        }
        let start = (lane * size + offset) as usize;
        Ok(&mut warp.local[start..start + bytes as usize])
    }

    fn bytes_of(slice: &[u8]) -> u64 {
        let mut value = [0; 8];
        value[..slice.len()].copy_from_slice(slice);
        u64::from_le_bytes(value)
    }

    pub fn load(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: (syntax::Type, Space, Strength, &[Target], Address),
    ) -> Run<()> {
        let (ty, space, strength, targets, address) = op;
        let bytes = ty.bytes();
        let total = bytes * targets.len() as u32;
        let addresses = self.addresses(warp, address);
        if self.load_plainly(warp, mask, (ty, space, targets), &addresses) {
            return Ok(());
        }
        let signed = ty.is_signed();
        let extend = |value: u64| {
            if signed {
                ((value << (64 - 8 * bytes)) as i64 >> (64 - 8 * bytes)) as u64
            } else {
                value
            }
        };
        for lane in lanes(mask) {
            let address = addresses[lane as usize];
            Self::check_alignment(lane, address, total)?;
            let failed = |message| Trap::in_lane(lane, message);
            match locate(space, address) {
                Location::Global(address) => {
                    let by = By::Thread(strength);
                    self.touch_global((warp.index, 1 << lane), (address, total), by, Touch::Read)
                        .map_err(failed)?;
                    for (at, target) in targets.iter().enumerate() {
                        let value = self
                            .memory
                            .load(
                                &mut self.recent,
                                address + u64::from(bytes) * at as u64,
                                bytes,
                            )
                            .map_err(failed)?;
                        warp.set_lane(*target, lane, extend(value));
                    }
                }
                Location::Shared(address) => {
                    let by = By::Thread(strength);
                    self.touch(warp.index, 1 << lane, (address, total), by, false)
                        .map_err(failed)?;
                    let slice = self.shared(address, total).map_err(failed)?;
                    for (target, part) in targets.iter().zip(slice.chunks_exact(bytes as usize)) {
                        warp.set_lane(*target, lane, extend(Self::bytes_of(part)));
                    }
                }
                Location::Local(offset) => {
                    for (at, target) in targets.iter().enumerate() {
                        let part = self
                            .local(warp, lane, offset + bytes * at as u32, bytes)
                            .map_err(failed)?;
                        let value = extend(Self::bytes_of(part));
                        warp.set_lane(*target, lane, value);
                    }
                }
            }
        }
        Ok(())
    }

    pub fn store(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        op: (syntax::Type, Space, Strength, &[Value], Address),
    ) -> Run<()> {
        let (ty, space, strength, values, address) = op;
        let bytes = ty.bytes();
        let total = bytes * values.len() as u32;
        let addresses = self.addresses(warp, address);
        if self.store_plainly(warp, mask, (ty, space, values), &addresses) {
            return Ok(());
        }
        for lane in lanes(mask) {
            Self::check_alignment(lane, addresses[lane as usize], total)?;
            let by = By::Thread(strength);
            let who = (warp.index, 1 << lane);
            match locate(space, addresses[lane as usize]) {
                Location::Shared(address) => self.touch(who.0, who.1, (address, total), by, true),
                Location::Global(address) => {
                    self.touch_global(who, (address, total), by, Touch::Write)
                }
                Location::Local(_) => Ok(()),
            }
            .map_err(|message| Trap::in_lane(lane, message))?;
        }
        for (at, value) in values.iter().enumerate() {
            let data = self.values(warp, *value);
            for lane in lanes(mask) {
                let (address, value) = (
                    addresses[lane as usize] + u64::from(bytes) * at as u64,
                    data[lane as usize],
                );
                let failed = |message| Trap::in_lane(lane, message);
                match locate(space, address) {
                    Location::Global(address) => self
                        .memory
                        .store(&mut self.recent, address, bytes, value)
                        .map_err(failed)?,
                    Location::Shared(address) => {
                        self.shared(address, bytes)
                            .map_err(failed)?
                            .copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
                    }
                    Location::Local(offset) => {
                        self.local(warp, lane, offset, bytes)
                            .map_err(failed)?
                            .copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
                    }
                }
            }
        }
        Ok(())
    }

    pub fn copy_local(&self, warp: &mut Warp, mask: u32, from: u32, to: u32, bytes: u32) {
        for lane in lanes(mask) {
            let start = (lane * self.program.local_bytes) as usize;
            let from = start + from as usize;
            warp.local
                .copy_within(from..from + bytes as usize, start + to as usize);
        }
    }

    /// Changes a value in memory at once, and returns the old one.
    pub fn update(
        &mut self,
        (warp, lane): (u32, u32),
        (space, strength, touch): (Space, Strength, Touch),
        address: u64,
        bytes: u32,
        change: impl Fn(u64) -> u64,
    ) -> Run<u64> {
        Self::check_alignment(lane, address, bytes)?;
        let failed = |message| Trap::in_lane(lane, message);
        match locate(space, address) {
            Location::Global(address) => {
                let by = By::Thread(strength);
                self.touch_global((warp, 1 << lane), (address, bytes), by, touch)
                    .map_err(failed)?;
                self.memory
                    .update(&mut self.recent, address, bytes, change)
                    .map_err(failed)
            }
            Location::Shared(address) => {
                let by = By::Thread(strength);
                self.touch(warp, 1 << lane, (address, bytes), by, true)
                    .map_err(failed)?;
                let slice = self.shared(address, bytes).map_err(failed)?;
                let old = Self::bytes_of(slice);
                slice.copy_from_slice(&change(old).to_le_bytes()[..bytes as usize]);
                Ok(old)
            }
            Location::Local(_) => Err(failed("an atomic operation on local memory".to_owned())),
        }
    }
}
