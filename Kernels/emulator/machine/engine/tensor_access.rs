//! Threads' loads and stores of tensor memory, and when the registers of a load hold its values.

use super::work::TensorRead;
use super::{Engine, Run};
use crate::error::Trap;
use crate::launch::{Queue, TensorLoads};
use crate::op::*;
use crate::race::TensorBy;
use crate::warp::Warp;

/// What registers hold until a load has landed: not a number as a single.
const NOTHING: Words = [0x7fc0_dead; LANES];

/// The form that most have: every thread its own lane, columns beside each other.
const ROWS_OF_WORDS: (TcgenShape, bool) = (TcgenShape::S32x32, false);

impl Engine<'_> {
    pub(super) fn load_tensor(
        &mut self,
        warp: &mut Warp,
        form: (TcgenShape, bool),
        targets: &[u32],
        address: Address,
        pc: usize,
    ) -> Run<()> {
        let addresses = self.shared_addresses(warp, address);
        self.touch_cells(warp, form, &addresses, targets.len(), TensorBy::Load)?;
        self.read_cells(warp, form, targets, &addresses)?;
        if !self.lands_at_once(Queue::TensorLoads) {
            for target in targets {
                warp.words[*target as usize] = NOTHING;
            }
            warp.tensor_loads.push(TensorRead { pc, addresses });
        }
        Ok(())
    }

    /// Lets loads read tensor memory, the oldest first: those whose instructions are chosen.
    pub(super) fn land_loads(
        &mut self,
        warp: &mut Warp,
        chosen: impl Fn(usize) -> bool,
    ) -> Run<()> {
        let program = self.program;
        let loads = std::mem::take(&mut warp.tensor_loads);
        for load in loads {
            match &program.code[load.pc].op {
                Op::Tcgen(op) if chosen(load.pc) => {
                    if let Tcgen::Load {
                        shape,
                        packed,
                        targets,
                        ..
                    } = &**op
                    {
                        self.read_cells(warp, (*shape, *packed), targets, &load.addresses)?;
                    }
                }
                _ => warp.tensor_loads.push(load),
            }
        }
        Ok(())
    }

    /// Where first uses wait for them: lets loads land whose registers an instruction names.
    #[inline(always)]
    pub(super) fn land_named_loads(&mut self, warp: &mut Warp, pc: usize) -> Run<()> {
        if warp.tensor_loads.is_empty() || self.launch.tensor_loads == TensorLoads::AfterWait {
            return Ok(());
        }
        let named = &self.program.loads_named[pc];
        if named.is_empty() {
            return Ok(());
        }
        self.land_loads(warp, |load| named.contains(&load))
    }

    fn read_cells(
        &mut self,
        warp: &mut Warp,
        (shape, packed): (TcgenShape, bool),
        targets: &[u32],
        addresses: &Words,
    ) -> Run<()> {
        let form = (shape, packed);
        if form == ROWS_OF_WORDS {
            for (lane, address) in addresses.iter().enumerate() {
                let failed = |message| Trap::in_lane(lane as u32, message);
                let (row, first) =
                    Self::cell((warp.index, lane as u32, 0), form, *address).map_err(failed)?;
                let memory = self.tensor_memory(self.block).map_err(failed)?;
                let cells = memory.columns(row, first, targets.len() as u32);
                for (target, cell) in targets.iter().zip(cells.map_err(failed)?) {
                    warp.words[*target as usize][lane] = *cell;
                }
            }
            return Ok(());
        }
        for (number, target) in targets.iter().enumerate() {
            for (lane, address) in addresses.iter().enumerate() {
                let failed = |message| Trap::in_lane(lane as u32, message);
                let who = (warp.index, lane as u32, number as u32);
                let (row, column) = Self::cell(who, form, *address).map_err(failed)?;
                let memory = self.tensor_memory(self.block).map_err(failed)?;
                let mut word = memory.read(row, column).map_err(failed)?;
                if packed {
                    let next = memory.read(row, column + 1).map_err(failed)?;
                    word = word & 0xffff | next << 16;
                }
                warp.words[*target as usize][lane] = word;
            }
        }
        Ok(())
    }

    pub(super) fn store_tensor(
        &mut self,
        warp: &Warp,
        (shape, packed): (TcgenShape, bool),
        values: &[Word],
        address: Address,
    ) -> Run<()> {
        let addresses = self.shared_addresses(warp, address);
        let form = (shape, packed);
        self.touch_cells(warp, form, &addresses, values.len(), TensorBy::Store)?;
        for (number, value) in values.iter().enumerate() {
            let words = self.words(warp, *value);
            for (lane, word) in words.iter().enumerate() {
                let failed = |message| Trap::in_lane(lane as u32, message);
                let who = (warp.index, lane as u32, number as u32);
                let (row, column) = Self::cell(who, form, addresses[lane]).map_err(failed)?;
                let memory = self.tensor_memory(self.block).map_err(failed)?;
                if packed {
                    memory.write(row, column, word & 0xffff).map_err(failed)?;
                    memory.write(row, column + 1, word >> 16).map_err(failed)?;
                } else {
                    memory.write(row, column, *word).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    // Lane and column of tensor memory behind a register of a thread; the first column of a packed one.
    pub(super) fn cell(
        (warp, lane, number): (u32, u32, u32),
        (shape, packed): (TcgenShape, bool),
        address: u32,
    ) -> Result<(u32, u32), String> {
        let (base, given, column) = (warp % 4 * 32, address >> 16 & 0xffff, address & 0xffff);
        // A warp reaches its own quarter alone, which the lanes of the first stand for as well: DeepGEMM's epilogues
        // have no others, and are right on hardware.
        let row = if given < 32 { base + given } else { given };
        let half = row.wrapping_sub(base);
        if half != 0 && (shape == TcgenShape::S32x32 || half != 16) {
            return Err(format!(
                "lane {given} of tensor memory, while the warp reaches {base} to {}",
                base + 31
            ));
        }
        let (below, right) = shape.cell(lane, number);
        Ok((row + below, column + right * if packed { 2 } else { 1 }))
    }
}
