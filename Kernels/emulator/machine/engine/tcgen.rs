//! Fifth-generation tensor cores: tensor memory and the products that go to it.

use std::ops::RangeInclusive;
use std::time::Instant;

use super::work::{TensorMma, TensorPending, TensorScales, TensorWork};
use super::{Engine, Flow, Run};
use crate::descriptor::Descriptor;
use crate::error::{Error, Trap};
use crate::launch::Queue;
use crate::op::*;
use crate::race::{By, TensorBy};
use crate::tensor_memory::{TensorMemory, ROWS};
use crate::warp::{lanes, Warp};

/// What tcgen05.shift reaches: 32 bytes of each of 32 lanes.
pub(super) const SHIFTED_LANES: u32 = 32;
pub(super) const SHIFTED_COLUMNS: u32 = 8;

impl Engine<'_> {
    pub(super) fn tcgen(&mut self, warp: &mut Warp, op: &Tcgen, mask: u32, pc: usize) -> Run<Flow> {
        let first = mask.trailing_zeros() as usize;
        match op {
            Tcgen::Alloc {
                pair,
                address,
                columns,
            } => {
                self.check_pair(*pair)?;
                let (to, columns) = (
                    self.shared_addresses(warp, *address)[first],
                    self.words(warp, *columns)[first],
                );
                let base = self
                    .tensor_memory(self.block)
                    .and_then(|memory| memory.allocate(columns))
                    .map_err(Trap::new)?;
                // Another warp may free some.
                let Some(base) = base else {
                    return Ok(Flow::Again);
                };
                let held = self
                    .tensor_memory(self.block)
                    .map_err(Trap::new)?
                    .columns_held();
                let most = &mut self.tally().tensor_columns;
                *most = held.max(*most);
                let by = By::WEAK;
                self.touch(warp.index, mask, (to, 4), by, true)
                    .map_err(Trap::new)?;
                self.shared(to, 4)
                    .map_err(Trap::new)?
                    .copy_from_slice(&base.to_le_bytes());
            }
            Tcgen::Dealloc {
                pair,
                base,
                columns,
            } => {
                self.check_pair(*pair)?;
                let (base, columns) = (
                    self.words(warp, *base)[first],
                    self.words(warp, *columns)[first],
                );
                let all = (base & 0xffff, columns);
                self.touch_columns(warp.index, mask, self.block, all, (0, ROWS), TensorBy::Free)
                    .map_err(Trap::new)?;
                self.tensor_memory(self.block)
                    .and_then(|memory| memory.free(base, columns))
                    .map_err(Trap::new)?;
            }
            Tcgen::Relinquish { pair } => {
                self.check_pair(*pair)?;
                self.tensor_memory(self.block)
                    .map_err(Trap::new)?
                    .relinquish();
            }
            Tcgen::Load {
                shape,
                packed,
                targets,
                address,
            } => self.load_tensor(warp, (*shape, *packed), targets, *address, pc)?,
            Tcgen::Store {
                shape,
                packed,
                values,
                address,
            } => self.store_tensor(warp, (*shape, *packed), values, *address)?,
            Tcgen::WaitLoad => {
                if let Some(races) = &mut self.races {
                    races.wait_tensor(self.block, warp.index, true);
                }
                self.land_loads(warp, |_| true)?;
            }
            Tcgen::WaitStore => {
                if let Some(races) = &mut self.races {
                    races.wait_tensor(self.block, warp.index, false);
                }
            }
            Tcgen::Fence { before } => {
                if let Some(races) = &mut self.races {
                    races.fence_tensor(self.block, warp.index, mask, *before);
                }
            }
            Tcgen::Mma { .. } | Tcgen::Copy { .. } | Tcgen::Shift { .. } | Tcgen::Commit { .. } => {
                for lane in lanes(mask) {
                    let work = self
                        .tensor_work(warp, op, lane)
                        .map_err(|message| Trap::in_lane(lane, message))?;
                    self.touch_tensor_work(warp.index, lane, &work)
                        .map_err(|message| Trap::in_lane(lane, message))?;
                    let (when, thread) = (self.due(Queue::Products), (warp.index, lane));
                    let queue = &mut self.blocks[self.block].tensor_queue;
                    // A commit waits for what its own thread has issued, and for nobody else's.
                    let place = match work {
                        TensorWork::Commit { .. } => queue
                            .iter()
                            .rposition(|pending| pending.thread == thread)
                            .map_or(0, |last| last + 1),
                        _ => queue.len(),
                    };
                    let pending = TensorPending {
                        work,
                        thread,
                        when,
                        pc,
                    };
                    queue.insert(place, pending);
                    while self.lands_at_once(Queue::Products) && self.is_tensor_due(self.block) {
                        let pending = self.blocks[self.block].tensor_queue.pop_front();
                        let Some(pending) = pending else { break };
                        self.perform(self.block, &pending.work)
                            .map_err(|message| Trap::in_lane(lane, message))?;
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn check_pair(&self, pair: bool) -> Run<()> {
        if pair && !self.blocks.len().is_multiple_of(2) {
            return Err(Trap::new(
                ".cta_group::2 in a cluster without pairs of blocks",
            ));
        }
        Ok(())
    }

    pub(super) fn tensor_memory(&mut self, block: usize) -> Result<&mut TensorMemory, String> {
        self.blocks[block]
            .tensor
            .as_deref_mut()
            .ok_or_else(|| "no tensor memory".to_owned())
    }

    pub(super) fn tensor_work(
        &mut self,
        warp: &Warp,
        op: &Tcgen,
        lane: u32,
    ) -> Result<TensorWork, String> {
        let at = lane as usize;
        match op {
            Tcgen::Copy {
                pair,
                shape,
                narrow,
                address,
                descriptor,
            } => {
                let (to, descriptor) = (
                    self.shared_addresses(warp, *address)[at],
                    self.wides(warp, *descriptor)[at],
                );
                Descriptor::blackwell(descriptor)?;
                Ok(TensorWork::Copy {
                    pair: *pair,
                    shape: *shape,
                    narrow: *narrow,
                    to,
                    descriptor,
                })
            }
            Tcgen::Shift { pair, address } => {
                let at = self.shared_addresses(warp, *address)[at];
                if !(at >> 16).is_multiple_of(SHIFTED_LANES) {
                    return Err(format!(
                        "a shift from lane {} of tensor memory, which is no multiple of 32",
                        at >> 16
                    ));
                }
                Ok(TensorWork::Shift { pair: *pair, at })
            }
            Tcgen::Commit {
                barrier, multicast, ..
            } => {
                let barrier = self.shared_addresses(warp, *barrier)[at];
                let blocks = multicast.map(|mask| self.words(warp, mask)[at] & 0xffff);
                let view = self
                    .races
                    .as_mut()
                    .map(|races| Box::new(races.release_tensor(self.block, warp.index, lane)));
                Ok(TensorWork::Commit {
                    barrier,
                    blocks,
                    view,
                })
            }
            Tcgen::Mma {
                pair,
                ws,
                kind,
                d,
                a,
                b,
                descriptor,
                scales,
                scale_block,
                disabled,
                accumulates,
                scale_input,
            } => {
                let (a, a_in_tensor) = match a {
                    TcgenA::Shared(wide) => (self.wides(warp, *wide)[at], false),
                    TcgenA::Tensor(address) => {
                        (u64::from(self.shared_addresses(warp, *address)[at]), true)
                    }
                };
                let bits = self.words(warp, *descriptor)[at];
                let mut mma = describe(*kind, bits, (*pair, *ws))?;
                for (to, word) in mma.disabled.iter_mut().zip(disabled) {
                    *to = self.words(warp, *word)[at];
                }
                mma.d = self.shared_addresses(warp, *d)[at];
                (mma.a, mma.a_in_tensor) = (a, a_in_tensor);
                mma.b = self.wides(warp, *b)[at];
                mma.accumulates = warp.bit(*accumulates) >> lane & 1 == 1;
                mma.input_scale = crate::number::power(-(*scale_input as i32)) as f32;
                if !a_in_tensor {
                    Descriptor::blackwell(a)?;
                } else if mma.a_element.bits() == 8
                    && !matches!(mma.a_element, Element::E4m3 | Element::E5m2)
                    || mma.a_transposed
                    || *ws
                {
                    return Err(
                        "an operand in tensor memory of another layout than rows of whole bytes"
                            .to_owned(),
                    );
                }
                Descriptor::blackwell(mma.b)?;
                if let Some((scale_a, scale_b)) = scales {
                    let address = |address: &Address| self.shared_addresses(warp, *address)[at];
                    mma.scales = Some(TensorScales {
                        a: address(scale_a),
                        b: address(scale_b),
                        a_part: bits >> 29 & 3,
                        b_part: bits >> 4 & 3,
                        block: *scale_block,
                        is_ue8m0: bits >> 23 & 1 == 1,
                    });
                    if *scale_block == 32 && bits >> 23 & 1 == 0 {
                        return Err("scales of blocks of 32 that are not ue8m0".to_owned());
                    }
                }
                Ok(TensorWork::Mma(Box::new(mma)))
            }
            _ => Err("not work of a tensor core".to_owned()),
        }
    }

    pub(super) fn land_tensor(&mut self, block: usize) -> Result<(), Error> {
        let Some(pending) = self.blocks[block].tensor_queue.pop_front() else {
            return Ok(());
        };
        self.block = block;
        self.perform(block, &pending.work)
            .map_err(|message| self.fault(Trap::new(message), block, None, pending.pc))
    }

    pub(super) fn perform(&mut self, block: usize, work: &TensorWork) -> Result<(), String> {
        self.progress += 1;
        match work {
            TensorWork::Commit {
                barrier,
                blocks,
                view,
            } => {
                for rank in lanes(blocks.unwrap_or(1 << (barrier >> 24))) {
                    let barrier = rank << 24 | barrier & 0xff_ffff;
                    self.arrive_with(barrier, view.as_deref());
                    self.arrive(barrier)?;
                }
                Ok(())
            }
            TensorWork::Copy {
                pair,
                shape,
                narrow,
                to,
                descriptor,
            } => blocks_of(*pair, block).try_for_each(|block| {
                self.copy_to_tensor(block, (*shape, *narrow), *to, *descriptor)
            }),
            TensorWork::Shift { pair, at } => {
                blocks_of(*pair, block).try_for_each(|block| self.shift(block, *at))
            }
            TensorWork::Mma(mma) => {
                let started = Instant::now();
                *self.tally().products.entry(mma.name()).or_default() += 1;
                self.tally().multiply_adds += u64::from(mma.rows * mma.columns * mma.depth);
                self.tally().sums += u64::from(!mma.accumulates);
                if mma.pair {
                    self.tensor_product(block & !1, block & !1, mma)?;
                    self.tensor_product(block | 1, block & !1, mma)?;
                } else {
                    self.tensor_product(block, block, mma)?;
                }
                self.tally().product_time += started.elapsed();
                Ok(())
            }
        }
    }

    // Every lane but the last takes over what the next one has, as shfl.down has it, and the last one stays.
    fn shift(&mut self, block: usize, at: u32) -> Result<(), String> {
        let (column, lane) = (at & 0xffff, at >> 16);
        let memory = self.tensor_memory(block)?;
        for (lane, column) in (lane..lane + SHIFTED_LANES - 1)
            .flat_map(|lane| (column..column + SHIFTED_COLUMNS).map(move |column| (lane, column)))
        {
            let below = memory.read(lane + 1, column)?;
            memory.write(lane, column, below)?;
        }
        Ok(())
    }

    pub(super) fn copy_to_tensor(
        &mut self,
        block: usize,
        (shape, narrow): (CopyShape, Option<u32>),
        to: u32,
        descriptor: u64,
    ) -> Result<(), String> {
        let descriptor = Descriptor::blackwell(descriptor)?;
        let (rows, chunks) = shape.rows_and_chunks();
        let (column, lane) = (to & 0xffff, to >> 16 & 0x7f);
        for row in 0..rows {
            for chunk in 0..chunks {
                let address = (block as u32) << 24 | descriptor.along_depth(row, chunk * 16);
                let mut bytes = [0; 16];
                bytes.copy_from_slice(self.shared(address, 16)?);
                if let Some(bits) = narrow {
                    let packed = u128::from_le_bytes(bytes);
                    let element = |at: u32| (packed >> (at * bits)) as u8 & ((1 << bits) - 1);
                    bytes = std::array::from_fn(|at| element(at as u32));
                }
                let words: Vec<u32> = bytes
                    .chunks_exact(4)
                    .map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
                    .collect();
                let places: Vec<u32> = match shape {
                    CopyShape::S32x128 => (0..4).map(|copy| row + 32 * copy).collect(),
                    CopyShape::S64x128Pairs02 => (0..2).map(|copy| row + 64 * copy).collect(),
                    CopyShape::S64x128Pairs01 => (0..2)
                        .map(|copy| row % 32 + 64 * (row / 32) + 32 * copy)
                        .collect(),
                    CopyShape::S4x256 => vec![lane + 32 * row],
                    _ => vec![lane + row],
                };
                for place in places {
                    for (at, word) in words.iter().enumerate() {
                        self.tensor_memory(block)?.write(
                            place,
                            column + chunk * 4 + at as u32,
                            *word,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The block whose tensor core works, or both of its pair.
pub(super) fn blocks_of(pair: bool, block: usize) -> RangeInclusive<usize> {
    if pair {
        block & !1..=block | 1
    } else {
        block..=block
    }
}

/// What an instruction descriptor says, checked.
fn describe(kind: TcgenKind, bits: u32, (pair, ws): (bool, bool)) -> Result<TensorMma, String> {
    let four = matches!(kind, TcgenKind::Mxf4 | TcgenKind::Mxf4nvf4);
    let (a, b) = (
        bits >> 7 & 7,
        if four { bits >> 10 & 3 } else { bits >> 10 & 7 },
    );
    let element = |format: u32| {
        Ok(match (kind, format) {
            (TcgenKind::F16, 0) => Element::F16,
            (TcgenKind::F16, 1) => Element::Bf16,
            (TcgenKind::Tf32, 2) => Element::Tf32,
            (TcgenKind::I8, 0) => Element::U8,
            (TcgenKind::I8, 1) => Element::S8,
            (TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4, 0) => Element::E4m3,
            (TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4, 1) => Element::E5m2,
            (TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4, 3) => Element::E2m3,
            (TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4, 4) => Element::E3m2,
            (TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4, 5) => Element::E2m1,
            (TcgenKind::Mxf4 | TcgenKind::Mxf4nvf4, 1) => Element::E2m1,
            _ => {
                return Err(format!(
                    "an instruction descriptor with operand format {format} for {kind:?}"
                ))
            }
        })
    };
    let scaled = matches!(
        kind,
        TcgenKind::Mxf8f6f4 | TcgenKind::Mxf4 | TcgenKind::Mxf4nvf4
    );
    let rows = (bits >> 24 & 31) << 4;
    let columns = (bits >> 17 & 63) << 3;
    if bits >> 2 & 1 == 1 {
        return Err("sparse products are not supported".to_owned());
    }
    if four && bits >> 31 == 1 {
        return Err("products of depth 96 are not supported".to_owned());
    }
    if four && bits >> 15 & 3 != 0 {
        return Err("operands of 4 bits that are transposed".to_owned());
    }
    let per_block = if pair { rows / 2 } else { rows };
    let known = match (rows, pair) {
        _ if ws => matches!((rows, columns), (32 | 64 | 128, 64 | 128 | 256)),
        (64 | 128, false) | (128 | 256, true) => !scaled || per_block == 128,
        _ => false,
    };
    let bytes_by_columns = bits >> 16 & 1 == 1
        && matches!(
            kind,
            TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4 | TcgenKind::I8
        );
    // Each block of a pair loads half of the columns.
    let each = if pair { columns / 2 } else { columns };
    let step = match kind {
        // Bytes that are integers come in 8, 16, 24, 32 and then in steps of 16.
        TcgenKind::I8 if pair || columns > 32 => 16,
        _ if bytes_by_columns => 16,
        _ => 8,
    };
    if !known || columns == 0 || columns > 256 || !each.is_multiple_of(step) {
        return Err(format!(
            "a product of {rows} rows and {columns} columns{}{}",
            if pair { " of a pair" } else { "" },
            if ws { " with .ws" } else { "" },
        ));
    }
    let d_format = if scaled { 1 } else { bits >> 4 & 3 };
    let fits = match kind {
        TcgenKind::I8 => d_format == 2,
        TcgenKind::Tf32 => d_format == 1,
        // Sums of halves are of halves.
        TcgenKind::F16 => d_format == 1 || d_format == 0 && (a, b) == (0, 0),
        _ => d_format <= 1,
    };
    if !fits {
        return Err(format!("an accumulator of format {d_format}"));
    }
    if kind == TcgenKind::I8 && bits >> 13 & 3 != 0 {
        return Err("integers that are negated".to_owned());
    }
    Ok(TensorMma {
        pair,
        ws,
        disabled: [0; 8],
        d: 0,
        a: 0,
        a_in_tensor: false,
        b: 0,
        rows,
        columns,
        depth: match kind {
            TcgenKind::F16 => 16,
            TcgenKind::Tf32 => 8,
            TcgenKind::F8f6f4 | TcgenKind::Mxf8f6f4 | TcgenKind::I8 => 32,
            TcgenKind::Mxf4 | TcgenKind::Mxf4nvf4 => 64,
        },
        a_element: element(a)?,
        b_element: element(b)?,
        dense4: four,
        half: d_format == 0,
        whole: (kind == TcgenKind::I8).then_some(bits >> 3 & 1 == 1),
        negated: (bits >> 13 ^ bits >> 14) & 1 == 1,
        a_transposed: bits >> 15 & 1 == 1,
        b_transposed: bits >> 16 & 1 == 1,
        accumulates: false,
        input_scale: 1.0,
        scales: None,
    })
}
