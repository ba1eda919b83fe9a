//! Matrices in registers and shared memory: ldmatrix, mma.sync, wgmma.

use std::sync::LazyLock;
use std::time::Instant;

use super::work::Product;
use super::{Engine, Run};
use crate::descriptor::Descriptor;
use crate::error::Trap;
use crate::lanes::fused;
use crate::launch::Queue;
use crate::number::{bf16_to_f32, f16_to_f32, f32_to_f16, E2M1, E2M3, E3M2, E4M3, E5M2};
use crate::op::*;
use crate::race::By;
use crate::warp::{lanes, Warp};

/// The value of an element that lies at the low end of a word.
pub fn decode(element: Element, bits: u32) -> f32 {
    match element {
        Element::F16 => f16_to_f32(bits & 0xffff),
        Element::Bf16 => bf16_to_f32(bits & 0xffff),
        Element::Tf32 => f32::from_bits(bits & 0xffff_e000),
        Element::E4m3 => E4M3.decode(bits & 0xff),
        Element::E5m2 => E5M2.decode(bits & 0xff),
        Element::E3m2 => E3M2.decode(bits & 0x3f),
        Element::E2m3 => E2M3.decode(bits & 0x3f),
        Element::E2m1 => E2M1.decode(bits & 0xf),
        Element::S8 => f32::from(bits as u8 as i8),
        Element::U8 => f32::from(bits as u8),
    }
}

/// The values of packed elements of whole bytes.
fn decode_each(element: Element, bytes: &[u8], out: &mut [f32]) {
    static TABLES: LazyLock<[[f32; 256]; 2]> = LazyLock::new(|| {
        [E4M3, E5M2].map(|format| std::array::from_fn(|bits| format.decode(bits as u32)))
    });
    let look_up = |table: &[f32; 256], out: &mut [f32]| {
        for (value, byte) in out.iter_mut().zip(bytes) {
            *value = table[*byte as usize];
        }
    };
    match element {
        Element::E4m3 => look_up(&TABLES[0], out),
        Element::E5m2 => look_up(&TABLES[1], out),
        Element::Bf16 => {
            for (value, pair) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *value = bf16_to_f32(u16::from_le_bytes(*pair).into());
            }
        }
        _ => {
            let size = element.bits() as usize / 8;
            for (value, part) in out.iter_mut().zip(bytes.chunks_exact(size)) {
                *value = decode(element, little(part));
            }
        }
    }
}

/// Puts a fragment's registers into rows: `rows[16][depth]` of A, or `rows[8][depth]` of B.
fn spread(fragment: &[Words], element: Element, depth: usize, is_a: bool, rows: &mut [f32]) {
    let each = 32 / element.bits() as usize;
    for (number, words) in fragment.iter().enumerate() {
        let (below, block) = if is_a {
            (number & 1, number >> 1)
        } else {
            (0, number)
        };
        for (lane, word) in words.iter().enumerate() {
            let row = lane / 4 + 8 * below;
            let column = block * 4 * each + lane % 4 * each;
            for at in 0..each {
                rows[row * depth + column + at] =
                    decode(element, word >> (at as u32 * element.bits()));
            }
        }
    }
}

/// `columns[at][row]` of `rows[row][at]`.
pub(super) fn transposed(rows: &[f32], count: usize, depth: usize) -> Vec<f32> {
    let mut columns = vec![0.0; rows.len()];
    for row in 0..count {
        for at in 0..depth {
            columns[at * count + row] = rows[row * depth + at];
        }
    }
    columns
}

impl Engine<'_> {
    pub(super) fn matrix(&mut self, warp: &mut Warp, op: &Op, mask: u32, pc: usize) -> Run<()> {
        if !matches!(op, Op::Mma { .. } | Op::MmaInteger { .. }) {
            return self.matrix_step(warp, op, mask, pc);
        }
        let started = Instant::now();
        let result = self.matrix_step(warp, op, mask, pc);
        self.tally().product_time += started.elapsed();
        result
    }

    fn matrix_step(&mut self, warp: &mut Warp, op: &Op, mask: u32, pc: usize) -> Run<()> {
        if mask != u32::MAX {
            return Err(Trap::new(
                "a matrix instruction without all lanes of its warp",
            ));
        }
        match op {
            Op::LoadMatrix {
                targets,
                transposed,
                address,
            } => {
                let addresses = self.shared_addresses(warp, *address);
                for (number, target) in targets.iter().enumerate() {
                    let matrix = self.rows(warp.index, &addresses, number)?;
                    let at = |row: usize, column: usize| {
                        u64::from(if *transposed {
                            matrix[column][row]
                        } else {
                            matrix[row][column]
                        })
                    };
                    warp.set_all(*target, mask, |lane| {
                        let (row, column) = (lane as usize / 4, lane as usize % 4 * 2);
                        at(row, column) | at(row, column + 1) << 16
                    });
                }
            }
            Op::MoveMatrix { target, source } => {
                let words = self.words(warp, *source);
                let at = |row: u32, column: u32| {
                    words[(4 * row + column / 2) as usize] >> (column % 2 * 16) & 0xffff
                };
                let out = std::array::from_fn(|lane| {
                    let (row, column) = (lane as u32 / 4, lane as u32 % 4 * 2);
                    at(column, row) | at(column + 1, row) << 16
                });
                warp.set_words(*target, mask, &out);
            }
            Op::StoreMatrix {
                values,
                transposed,
                address,
            } => {
                let addresses = self.shared_addresses(warp, *address);
                for (number, value) in values.iter().enumerate() {
                    let words = self.words(warp, *value);
                    let element = |row: usize, column: usize| {
                        (words[row * 4 + column / 2] >> (column % 2 * 16)) as u16
                    };
                    for row in 0..8 {
                        let lane = (number * 8 + row) as u32;
                        let address = addresses[lane as usize];
                        Self::check_alignment(lane, address.into(), 16)?;
                        let by = By::WEAK;
                        self.touch(warp.index, mask, (address, 16), by, true)
                            .map_err(|message| Trap::in_lane(lane, message))?;
                        let to = self
                            .shared(address, 16)
                            .map_err(|message| Trap::in_lane(lane, message))?;
                        for column in 0..8 {
                            let value = if *transposed {
                                element(column, row)
                            } else {
                                element(row, column)
                            };
                            to[2 * column..2 * column + 2].copy_from_slice(&value.to_le_bytes());
                        }
                    }
                }
            }
            Op::Mma {
                depth,
                a_type,
                b_type,
                half,
                d,
                a,
                b,
                c,
            } => {
                let depth = *depth as usize;
                let mut rows = vec![0.0; 16 * depth];
                let mut columns = vec![0.0; 8 * depth];
                let fragment = |list: &[Word]| -> Vec<Words> {
                    list.iter().map(|word| self.words(warp, *word)).collect()
                };
                spread(&fragment(a), *a_type, depth, true, &mut rows);
                spread(&fragment(b), *b_type, depth, false, &mut columns);
                let columns = transposed(&columns, 8, depth);
                let addends = fragment(c);
                let mut out = vec![[0u32; LANES]; d.len()];
                let mut sums = [0f32; 16 * 8];
                fused::product(&mut sums, &rows, &columns, 8);
                for (row, sums) in sums.chunks_exact(8).enumerate() {
                    for (column, sum) in sums.iter().enumerate() {
                        let lane = row % 8 * 4 + column / 2;
                        let at = row / 8 * 2 + column % 2;
                        if *half {
                            let shift = 16 * (at % 2) as u32;
                            let old = f16_to_f32(addends[at / 2][lane] >> shift & 0xffff);
                            out[at / 2][lane] |= f32_to_f16(old + sum) << shift;
                        } else {
                            out[at][lane] = (f32::from_bits(addends[at][lane]) + sum).to_bits();
                        }
                    }
                }
                for (target, words) in d.iter().zip(out) {
                    warp.set_all(*target, mask, |lane| words[lane as usize].into());
                }
            }
            Op::MmaInteger {
                depth,
                a_signed,
                b_signed,
                saturates,
                d,
                a,
                b,
                c,
            } => {
                self.whole_product(
                    warp,
                    *depth as usize,
                    (*a_signed, *b_signed, *saturates),
                    (d, a, b, c),
                );
            }
            Op::WgmmaFence => warp.products.fenced = true,
            Op::WgmmaCommit => {
                let group = std::mem::take(&mut warp.products.open);
                warp.products.groups.push_back(group);
                if let Some(races) = &mut self.races {
                    races.commit_products(self.block, warp.index);
                }
            }
            Op::WgmmaWait(left) => {
                if let Some(races) = &mut self.races {
                    races.wait_products(self.block, warp.index, *left as usize);
                }
                while warp.products.groups.len() > *left as usize {
                    for product in warp.products.groups.pop_front().unwrap_or_default() {
                        if !product.done {
                            self.product(warp, &product)?;
                        }
                    }
                }
            }
            Op::Wgmma(wgmma) => {
                if !warp.products.fenced {
                    return Err(Trap::new("wgmma.mma_async without a wgmma.fence before it"));
                }
                let uniform = |values: Wides| -> Run<u64> {
                    match lanes(mask).find(|lane| values[*lane as usize] != values[0]) {
                        None => Ok(values[0]),
                        Some(lane) => Err(Trap::in_lane(
                            lane,
                            "a descriptor that differs between lanes",
                        )),
                    }
                };
                let a = match &wgmma.a {
                    WgmmaA::Shared(wide) => Some(uniform(self.wides(warp, *wide))?),
                    WgmmaA::Registers(_) => None,
                };
                let b = uniform(self.wides(warp, wgmma.b))?;
                let accumulates = warp.bit(wgmma.accumulates);
                if accumulates != 0 && accumulates != u32::MAX {
                    return Err(Trap::new("a scale-d that differs between lanes"));
                }
                self.touch_product(warp, wgmma, a, b).map_err(Trap::new)?;
                // A warpgroup's counts once.
                self.tally().sums += u64::from(accumulates == 0 && warp.index.is_multiple_of(4));
                let mut product = Product {
                    pc,
                    a: a.unwrap_or(0),
                    b,
                    accumulates: accumulates != 0,
                    done: false,
                };
                // Products of one accumulator stay in order: none passes one that waits.
                let waiting = warp
                    .products
                    .open
                    .iter()
                    .chain(warp.products.groups.iter().flatten())
                    .any(|other| !other.done);
                if !waiting && !self.defers(Queue::Products) {
                    self.product(warp, &product)?;
                    product.done = true;
                }
                warp.products.open.push(product);
            }
            _ => return Err(Trap::new("an instruction that the machine cannot execute")),
        }
        Ok(())
    }

    fn rows(&mut self, warp: u32, addresses: &Words, number: usize) -> Run<[[u16; 8]; 8]> {
        let mut matrix = [[0; 8]; 8];
        for (row, values) in matrix.iter_mut().enumerate() {
            let lane = (number * 8 + row) as u32;
            let address = addresses[lane as usize];
            Self::check_alignment(lane, address.into(), 16)?;
            let by = By::WEAK;
            self.touch(warp, u32::MAX, (address, 16), by, false)
                .map_err(|message| Trap::in_lane(lane, message))?;
            let bytes = self
                .shared(address, 16)
                .map_err(|message| Trap::in_lane(lane, message))?;
            for (value, part) in values.iter_mut().zip(bytes.chunks_exact(2)) {
                *value = u16::from_le_bytes([part[0], part[1]]);
            }
        }
        Ok(matrix)
    }

    fn whole_product(
        &self,
        warp: &mut Warp,
        depth: usize,
        how: (bool, bool, bool),
        operands: (&[Target], &[Word], &[Word], &[Word]),
    ) {
        let (a_signed, b_signed, saturates) = how;
        let (d, a, b, c) = operands;
        let element = |signed: bool| if signed { Element::S8 } else { Element::U8 };
        let mut rows = vec![0.0; 16 * depth];
        let mut columns = vec![0.0; 8 * depth];
        let fragment = |list: &[Word]| -> Vec<Words> {
            list.iter().map(|word| self.words(warp, *word)).collect()
        };
        // Bytes and their products are exact in singles.
        spread(&fragment(a), element(a_signed), depth, true, &mut rows);
        spread(&fragment(b), element(b_signed), depth, false, &mut columns);
        let addends = fragment(c);
        let mut out = vec![[0u32; LANES]; d.len()];
        for row in 0..16 {
            for column in 0..8 {
                let (lane, at) = (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2);
                let sum: i64 = (0..depth)
                    .map(|k| (rows[row * depth + k] * columns[column * depth + k]) as i64)
                    .sum();
                let sum = i64::from(addends[at][lane] as i32) + sum;
                let sum = if saturates {
                    sum.clamp(i32::MIN.into(), i32::MAX.into())
                } else {
                    sum
                };
                out[at][lane] = sum as u32;
            }
        }
        for (target, words) in d.iter().zip(out) {
            warp.set_all(*target, u32::MAX, |lane| words[lane as usize].into());
        }
    }

    // A warp's 16 rows of a warpgroup's product.
    fn product(&mut self, warp: &mut Warp, product: &Product) -> Run<()> {
        let started = Instant::now();
        let program = self.program;
        let Op::Wgmma(op) = &program.code[product.pc].op else {
            return Err(Trap::new("not a product"));
        };
        let (columns, depth) = (op.columns as usize, op.depth as usize);
        let failed = |message: String| {
            Trap::new(format!(
                "{message} (operand of the product at {})",
                program.place(product.pc)
            ))
        };
        let mut rows = vec![0.0; 16 * depth];
        match &op.a {
            WgmmaA::Registers(registers) => {
                let fragment = registers.map(|number| warp.words[number as usize]);
                spread(&fragment, op.a_type, depth, true, &mut rows);
            }
            WgmmaA::Shared(_) => {
                let descriptor = Descriptor::hopper(product.a).map_err(failed)?;
                let first = warp.index % 4 * 16;
                self.operand(
                    self.block,
                    descriptor,
                    op.a_type,
                    (first, 16, op.depth),
                    op.a_transposed,
                    &mut rows,
                )
                .map_err(failed)?;
            }
        }
        let descriptor = Descriptor::hopper(product.b).map_err(failed)?;
        let mut b = vec![0.0; columns * depth];
        self.operand(
            self.block,
            descriptor,
            op.b_type,
            (0, op.columns, op.depth),
            op.b_transposed,
            &mut b,
        )
        .map_err(failed)?;
        let b = transposed(&b, columns, depth);
        if op.negated {
            rows.iter_mut().for_each(|value| *value = -*value);
        }
        let mut sums = vec![0f32; 16 * columns];
        fused::product(&mut sums, &rows, &b, columns);
        for (row, sums) in sums.chunks_exact(columns).enumerate() {
            for (column, sum) in sums.iter().enumerate() {
                let lane = row % 8 * 4 + column % 8 / 2;
                let at = column / 8 * 4 + row / 8 * 2 + column % 2;
                if op.half {
                    let word = &mut warp.words[op.d[at / 2] as usize][lane];
                    let shift = 16 * (at % 2) as u32;
                    let old = if product.accumulates {
                        f16_to_f32(*word >> shift & 0xffff)
                    } else {
                        0.0
                    };
                    *word = *word & !(0xffff << shift) | f32_to_f16(old + sum) << shift;
                } else {
                    let word = &mut warp.words[op.d[at] as usize][lane];
                    let old = if product.accumulates {
                        f32::from_bits(*word)
                    } else {
                        0.0
                    };
                    *word = (old + sum).to_bits();
                }
            }
        }
        self.progress += 1;
        self.tally().product_time += started.elapsed();
        Ok(())
    }

    /// Reads rows of an operand of a block's shared memory: `out[row][depth]`.
    pub(super) fn operand(
        &mut self,
        block: usize,
        descriptor: Descriptor,
        element: Element,
        shape: (u32, u32, u32),
        rows_contiguous: bool,
        out: &mut [f32],
    ) -> Result<(), String> {
        let (first, rows, depth) = shape;
        let bytes = element.bits() / 8;
        let base = (block as u32) << 24;
        for row in 0..rows {
            let to = &mut out[(row * depth) as usize..][..depth as usize];
            if rows_contiguous {
                for (at, value) in to.iter_mut().enumerate() {
                    let address = descriptor.along_rows((first + row) * bytes, at as u32);
                    let part = self.shared(base | address, bytes)?;
                    *value = decode(element, little(part));
                }
                continue;
            }
            let each = (16 / bytes) as usize;
            for (chunk, values) in to.chunks_mut(each).enumerate() {
                let address = descriptor.along_depth(first + row, chunk as u32 * 16);
                let part = self.shared(base | address, 16)?;
                decode_each(element, part, values);
            }
        }
        Ok(())
    }
}

fn little(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}
