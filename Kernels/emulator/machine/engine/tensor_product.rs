//! Products of fifth-generation tensor cores: operands, block scales, sums in tensor memory.

use super::matrix::transposed;
use super::work::{TensorMma, TensorScales};
use super::Engine;
use crate::descriptor::Descriptor;
use crate::lanes::fused;
use crate::number::{f16_to_f32, f32_to_f16, ue8m0_to_f32, E2M1, E2M3, E3M2, E4M3};
use crate::op::*;

impl Engine<'_> {
    // The rows of one block; columns of a pair come from both.
    pub(super) fn tensor_product(
        &mut self,
        block: usize,
        leader: usize,
        mma: &TensorMma,
    ) -> Result<(), String> {
        let (depth, columns) = (mma.depth as usize, mma.columns as usize);
        let groups = if mma.pair { 2 } else { 1 };
        let rows = mma.rows / groups;
        let mut a = vec![0.0; rows as usize * depth];
        if mma.a_in_tensor {
            self.rows_in_tensor(block, mma, rows, &mut a)?;
        } else {
            let descriptor = Descriptor::blackwell(mma.a)?;
            self.packed_operand(
                block,
                descriptor,
                (mma.a_element, mma.dense4),
                (rows, mma.depth),
                mma.a_transposed,
                &mut a,
            )?;
        }
        let descriptor = Descriptor::blackwell(mma.b)?;
        let each = mma.columns / groups;
        let mut b = vec![0.0; columns * depth];
        for group in 0..groups {
            let out = &mut b[(group * each) as usize * depth..][..each as usize * depth];
            self.packed_operand(
                leader + group as usize,
                descriptor,
                (mma.b_element, mma.dense4),
                (each, mma.depth),
                mma.b_transposed,
                out,
            )?;
        }
        if let Some(scales) = mma.scales {
            self.apply_scales(block, scales, scales.a, scales.a_part, rows, depth, &mut a)?;
            self.apply_scales(
                block,
                scales,
                scales.b,
                scales.b_part,
                mma.columns,
                depth,
                &mut b,
            )?;
        }
        let b = transposed(&b, columns, depth);
        let mut sums = vec![0f32; rows as usize * columns];
        fused::product(&mut sums, &a, &b, columns);
        if mma.negated {
            sums.iter_mut().for_each(|sum| *sum = -*sum);
        }
        let (d_column, d_lane) = (mma.d & 0xffff, mma.d >> 16 & 0x7f);
        let plain = !mma.ws && mma.whole.is_none() && mma.disabled.iter().all(|word| *word == 0);
        for (row, sums) in sums.chunks_exact(columns).enumerate() {
            let row = row as u32;
            if !plain {
                self.add_row(block, mma, (rows, row), sums)?;
                continue;
            }
            let memory = self.tensor_memory(block)?;
            for (lane, sums) in places(mma, rows, row, sums) {
                let words = memory.columns(lane + d_lane, d_column, sums.len() as u32)?;
                let scale = mma.input_scale;
                for (word, sum) in words.iter_mut().zip(sums) {
                    *word = match (mma.half, mma.accumulates) {
                        (false, true) => (f32::from_bits(*word) * scale + sum).to_bits(),
                        (false, false) => sum.to_bits(),
                        (true, true) => f32_to_f16(f16_to_f32(*word & 0xffff) * scale + sum),
                        (true, false) => f32_to_f16(*sum),
                    };
                }
            }
        }
        Ok(())
    }

    /// A row of a product that leaves lanes out, spreads over them, or is of integers.
    fn add_row(
        &mut self,
        block: usize,
        mma: &TensorMma,
        (rows, row): (u32, u32),
        sums: &[f32],
    ) -> Result<(), String> {
        let (d_column, d_lane) = (mma.d & 0xffff, mma.d >> 16 & 0x7f);
        for (column, sum) in sums.iter().enumerate() {
            let (lane, column) = place(mma, rows, row, column as u32);
            let (lane, column) = (lane + d_lane, column + d_column);
            let word = (block % 2 * if mma.pair { 4 } else { 0 }) + lane as usize / 32;
            if mma.disabled[word % 8] >> (lane % 32) & 1 == 1 {
                continue;
            }
            let memory = self.tensor_memory(block)?;
            let old = if mma.accumulates {
                memory.read(lane, column)?
            } else {
                0
            };
            let bits = if let Some(saturates) = mma.whole {
                let total = i64::from(old as i32) + *sum as i64;
                let most = i64::from(i32::MIN)..=i64::from(i32::MAX);
                if saturates {
                    total.clamp(*most.start(), *most.end()) as u32
                } else {
                    total as u32
                }
            } else if mma.half {
                f32_to_f16(f16_to_f32(old & 0xffff) * mma.input_scale + sum)
            } else {
                (f32::from_bits(old) * mma.input_scale + sum).to_bits()
            };
            memory.write(lane, column, bits)?;
        }
        Ok(())
    }

    pub(super) fn rows_in_tensor(
        &mut self,
        block: usize,
        mma: &TensorMma,
        rows: u32,
        out: &mut [f32],
    ) -> Result<(), String> {
        let (column, first) = (mma.a as u32 & 0xffff, mma.a as u32 >> 16 & 0x7f);
        let bits = mma.a_element.bits();
        let each = 32 / bits;
        for row in 0..rows {
            let lane = first
                + if rows == 64 && !mma.pair {
                    row / 16 * 32 + row % 16
                } else {
                    row
                };
            for k in 0..mma.depth {
                let word = self.tensor_memory(block)?.read(lane, column + k / each)?;
                out[(row * mma.depth + k) as usize] =
                    super::matrix::decode(mma.a_element, word >> (k % each * bits));
            }
        }
        Ok(())
    }

    // Elements of 4 and 6 bits: 16 of them at the start of each 16 bytes, or 32 of 4 bits.
    pub(super) fn packed_operand(
        &mut self,
        block: usize,
        descriptor: Descriptor,
        element: (Element, bool),
        shape: (u32, u32),
        rows_contiguous: bool,
        out: &mut [f32],
    ) -> Result<(), String> {
        let ((element, dense4), (rows, depth)) = (element, shape);
        let bits = match element {
            Element::E2m1 => 4,
            Element::E3m2 | Element::E2m3 => 6,
            _ => {
                return self.operand(
                    block,
                    descriptor,
                    element,
                    (0, rows, depth),
                    rows_contiguous,
                    out,
                )
            }
        };
        if rows_contiguous {
            return Err("elements below 8 bits with contiguous rows".to_owned());
        }
        let each = if dense4 { 32 } else { 16 };
        for row in 0..rows {
            for chunk in 0..depth / each {
                let address = (block as u32) << 24 | descriptor.along_depth(row, chunk * 16);
                let mut bytes = [0; 16];
                bytes.copy_from_slice(self.shared(address, 16)?);
                let packed = u128::from_le_bytes(bytes);
                for at in 0..each {
                    let pattern = (packed >> (at * bits)) as u32 & ((1 << bits) - 1);
                    let value = match element {
                        Element::E2m1 => E2M1.decode(pattern),
                        Element::E3m2 => E3M2.decode(pattern),
                        _ => E2M3.decode(pattern),
                    };
                    out[(row * depth + chunk * each + at) as usize] = value;
                }
            }
        }
        Ok(())
    }

    // Scale factors lie four to a word: row r in lane r % 32 of column r / 32, and the same in every quarter of the
    // lanes, each of which is read by a part of the tensor core.
    #[expect(clippy::too_many_arguments, reason = "one call per operand")]
    pub(super) fn apply_scales(
        &mut self,
        block: usize,
        scales: TensorScales,
        address: u32,
        part: u32,
        rows: u32,
        depth: usize,
        operand: &mut [f32],
    ) -> Result<(), String> {
        let count = depth as u32 / scales.block;
        if !part.is_multiple_of(count.next_power_of_two()) || part + count > 4 {
            return Err(format!(
                "scale factors {part} to {} of a word",
                part + count
            ));
        }
        let used = u32::MAX >> (32 - 8 * count) << (8 * part);
        for row in 0..rows {
            let (lane, column) = (row % 32, (address & 0xffff) + row / 32);
            let memory = self.tensor_memory(block)?;
            let word = memory.read(lane, column)?;
            for other in (1..4).map(|quarter| lane + 32 * quarter) {
                if (memory.read(other, column)? ^ word) & used != 0 {
                    return Err(format!(
                        "scale factors in lanes {lane} and {other} of column {column} differ; all quarters of tensor \
                         memory have to hold them"
                    ));
                }
            }
            let values = &mut operand[row as usize * depth..][..depth];
            for (number, values) in values.chunks_mut(scales.block as usize).enumerate() {
                let bits = word >> (8 * (part + number as u32)) & 0xff;
                let scale = if scales.is_ue8m0 {
                    ue8m0_to_f32(bits)
                } else {
                    E4M3.decode(bits & 0x7f)
                };
                values.iter_mut().for_each(|value| *value *= scale);
            }
        }
        Ok(())
    }
}

/// Lane and column of an accumulator's element.
pub(super) fn place(mma: &TensorMma, rows: u32, row: u32, column: u32) -> (u32, u32) {
    // Columns fill the lanes that rows leave.
    if mma.ws {
        let each = mma.columns * rows / 128;
        return (row + column / each * rows, column % each);
    }
    match (rows, mma.pair) {
        (64, true) => (
            row + if column < mma.columns / 2 { 0 } else { 64 },
            column % (mma.columns / 2),
        ),
        (64, false) => (row / 16 * 32 + row % 16, column),
        _ => (row, column),
    }
}

/// Lanes of a row of an accumulator, with the sums that go to the first columns there.
fn places<'s>(
    mma: &TensorMma,
    rows: u32,
    row: u32,
    sums: &'s [f32],
) -> impl Iterator<Item = (u32, &'s [f32])> {
    let halves = if rows == 64 && mma.pair { 2 } else { 1 };
    let lane = match (rows, mma.pair) {
        (64, false) => row / 16 * 32 + row % 16,
        _ => row,
    };
    let parts = sums.chunks_exact(sums.len() / halves).enumerate();
    parts.map(move |(half, sums)| (lane + 64 * half as u32, sums))
}
