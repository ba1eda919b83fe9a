//! What the race detector is told of tensor memory and of the work of tensor cores.

use super::tcgen::{blocks_of, SHIFTED_COLUMNS, SHIFTED_LANES};
use super::work::{TensorMma, TensorWork};
use super::{Engine, Run};
use crate::descriptor::Descriptor;
use crate::error::Trap;
use crate::op::{CopyShape, Element, TcgenShape, Words};
use crate::race::{By, TensorBy};
use crate::tensor_memory::ROWS;
use crate::warp::Warp;

impl Engine<'_> {
    /// Lanes of columns of a block's tensor memory.
    pub(super) fn touch_columns(
        &mut self,
        warp: u32,
        mask: u32,
        rank: usize,
        (first, count): (u32, u32),
        lanes: (u32, u32),
        by: TensorBy,
    ) -> Result<(), String> {
        let who = (self.block, warp, mask);
        // Where nothing is allocated, the access itself is refused.
        let known = self.blocks[rank]
            .tensor
            .as_ref()
            .is_some_and(|memory| memory.holds(first, count));
        let Some(races) = self.races.as_mut().filter(|_| known && lanes.1 <= ROWS) else {
            return Ok(());
        };
        let writes = !matches!(by, TensorBy::Load | TensorBy::Core { writes: false, .. });
        for column in first..first + count {
            races.touch_tensor(
                self.program,
                who,
                (rank, column, lanes),
                by,
                (self.pc, writes),
            )?;
        }
        Ok(())
    }

    fn touch_core(
        &mut self,
        (warp, lane): (u32, u32),
        rank: usize,
        columns: (u32, u32),
        lanes: (u32, u32),
        writes: bool,
    ) -> Result<(), String> {
        let by = TensorBy::Core {
            rank: self.block as u32,
            writes,
        };
        self.touch_columns(warp, 1 << lane, rank, columns, lanes, by)
    }

    /// What a warp's registers come from or go to.
    pub(super) fn touch_cells(
        &mut self,
        warp: &Warp,
        (shape, packed): (TcgenShape, bool),
        addresses: &Words,
        registers: usize,
        by: TensorBy,
    ) -> Run<()> {
        if self.races.is_none() {
            return Ok(());
        }
        let failed = |lane: usize| move |message: String| Trap::in_lane(lane as u32, message);
        for number in 0..registers as u32 {
            let step = if shape == TcgenShape::S32x32 { 32 } else { 1 };
            for lane in (0..addresses.len()).step_by(step) {
                let who = (warp.index, lane as u32, number);
                let (row, column) =
                    Self::cell(who, (shape, packed), addresses[lane]).map_err(failed(lane))?;
                let lanes = (row, row + step as u32);
                self.touch_columns(
                    warp.index,
                    u32::MAX,
                    self.block,
                    (column, 1 + u32::from(packed)),
                    lanes,
                    by,
                )
                .map_err(failed(lane))?;
            }
        }
        Ok(())
    }

    /// Sums, and operands and scales that are in tensor memory.
    fn touch_sums(&mut self, who: (u32, u32), rank: usize, mma: &TensorMma) -> Result<(), String> {
        let rows = if mma.pair { mma.rows / 2 } else { mma.rows };
        let part = |address: u32, count: u32| ((address & 0xffff, count), address >> 16 & 0x7f);
        let quarters = |lane: u32| (0..4).map(move |at| (lane + 32 * at, lane + 32 * at + 16));
        let (columns, lane) = part(mma.d, mma.columns);
        match (rows, mma.pair) {
            _ if mma.ws => {
                let each = (columns.0, columns.1 * rows / ROWS);
                self.touch_core(who, rank, each, (0, ROWS), true)?;
            }
            (64, true) => {
                let half = (columns.0, columns.1 / 2);
                self.touch_core(who, rank, half, (0, ROWS), true)?;
            }
            (64, false) => {
                for lanes in quarters(lane) {
                    self.touch_core(who, rank, columns, lanes, true)?;
                }
            }
            _ => self.touch_core(who, rank, columns, (0, ROWS), true)?,
        }
        if mma.a_in_tensor {
            let (columns, lane) = part(mma.a as u32, mma.depth * mma.a_element.bits() / 32);
            if rows == 64 && !mma.pair {
                for lanes in quarters(lane) {
                    self.touch_core(who, rank, columns, lanes, false)?;
                }
            } else {
                self.touch_core(who, rank, columns, (lane, lane + rows), false)?;
            }
        }
        if let Some(scales) = mma.scales {
            for (address, rows) in [(scales.a, rows), (scales.b, mma.columns)] {
                let (columns, _) = part(address, rows.div_ceil(32));
                self.touch_core(who, rank, columns, (0, ROWS), false)?;
            }
        }
        Ok(())
    }

    /// What a tensor core will touch.
    pub(super) fn touch_tensor_work(
        &mut self,
        warp: u32,
        lane: u32,
        work: &TensorWork,
    ) -> Result<(), String> {
        if self.races.is_none() {
            return Ok(());
        }
        let who = (warp, 1 << lane);
        let by = By::Tensor {
            rank: self.block as u32,
        };
        match work {
            TensorWork::Commit { .. } => Ok(()),
            TensorWork::Copy {
                pair,
                shape,
                to,
                descriptor,
                ..
            } => {
                let descriptor = Descriptor::blackwell(*descriptor)?;
                let (rows, chunks) = shape.rows_and_chunks();
                let (column, lane) = (to & 0xffff, to >> 16 & 0x7f);
                let filled = match shape {
                    CopyShape::S4x256 => (lane, lane + 97),
                    _ => (0, ROWS),
                };
                for rank in blocks_of(*pair, self.block) {
                    self.touch_operand(who, rank, descriptor, (0, rows, chunks * 16), None, by)?;
                    let columns = (column, chunks * 4);
                    self.touch_core((warp, lane), rank, columns, filled, true)?;
                }
                Ok(())
            }
            TensorWork::Shift { pair, at } => {
                let (columns, first) = ((at & 0xffff, SHIFTED_COLUMNS), at >> 16);
                let end = first + SHIFTED_LANES;
                for rank in blocks_of(*pair, self.block) {
                    let who = (warp, lane);
                    self.touch_core(who, rank, columns, (first + 1, end), false)?;
                    self.touch_core(who, rank, columns, (first, end - 1), true)?;
                }
                Ok(())
            }
            TensorWork::Mma(mma) => {
                let groups = if mma.pair { 2 } else { 1 };
                let bytes = |element: Element| match element {
                    Element::E2m1 if mma.dense4 => mma.depth / 2,
                    other => mma.depth * other.bits() / 8,
                };
                let operand = |rows: u32, element: Element, transposed: bool| {
                    if transposed {
                        ((0, rows * element.bits() / 8, 0), Some(mma.depth))
                    } else {
                        ((0, rows, bytes(element)), None)
                    }
                };
                for rank in blocks_of(mma.pair, self.block) {
                    if !mma.a_in_tensor {
                        let (shape, depth) =
                            operand(mma.rows / groups, mma.a_element, mma.a_transposed);
                        let descriptor = Descriptor::blackwell(mma.a)?;
                        self.touch_operand(who, rank, descriptor, shape, depth, by)?;
                    }
                    let (shape, depth) =
                        operand(mma.columns / groups, mma.b_element, mma.b_transposed);
                    let descriptor = Descriptor::blackwell(mma.b)?;
                    self.touch_operand(who, rank, descriptor, shape, depth, by)?;
                    self.touch_sums((warp, lane), rank, mma)?;
                }
                Ok(())
            }
        }
    }
}
