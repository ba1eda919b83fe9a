//! Narrow types to f32 and back.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use host::e2m1;

pub fn widen_bf16(from: &[bf16], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(u32::from(from.to_bits()) << 16);
    }
}

pub fn widen_f16(from: &[f16], to: &mut [f32]) {
    from.convert_to_f32_slice(to);
}

pub fn narrow_bf16(from: &[f32], to: &mut [bf16]) {
    to.convert_from_f32_slice(from);
}

pub fn narrow_f16(from: &[f32], to: &mut [f16]) {
    to.convert_from_f32_slice(from);
}

/// Locates the scale of an element in a matrix of FP8 values: each run of `block` elements in a row
/// shares one.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'a> {
    pub values: &'a [f32],
    pub block: usize,
    /// Stride from one block's scale to the next in the same row.
    pub block_stride: usize,
    /// Rows that share their scales, and the stride from one such group's scales to the next.
    pub rows: usize,
    pub row_stride: usize,
}

impl Scales<'_> {
    fn at(&self, row: usize, block: usize) -> f32 {
        self.values[row / self.rows * self.row_stride + block * self.block_stride]
    }
}

/// Widens rows of `columns` e4m3 values, times their scales.
pub fn widen_fp8(from: &[u8], columns: usize, scales: Scales, to: &mut [f32]) {
    let table = fp8_table();
    let rows = from.chunks(columns).zip(to.chunks_mut(columns));
    for (row, (from, to)) in rows.enumerate() {
        let blocks = from.chunks(scales.block).zip(to.chunks_mut(scales.block));
        for (block, (from, to)) in blocks.enumerate() {
            let scale = scales.at(row, block);
            for (to, &code) in to.iter_mut().zip(from) {
                *to = table[usize::from(code)] * scale;
            }
        }
    }
}

/// Widens rows of `columns` values of FP8 with UE8M0 scales, MXFP8, NVFP4 or MXFP4, times their scales: `scale` is
/// that of a row and block.
pub fn widen_blocks(
    from: &[u8],
    columns: usize,
    format: BlockFormat,
    scale: impl Fn(usize, usize) -> f32,
    to: &mut [f32],
) {
    let (block, packing, table) = match format {
        BlockFormat::Fp8Ue8m0 => (128, 1, fp8_table()),
        BlockFormat::Mxfp8 => (32, 1, fp8_table()),
        BlockFormat::Nvfp4 => (16, 2, [0.0; 256]),
        BlockFormat::Mxfp4 => (32, 2, [0.0; 256]),
    };
    let rows = from.chunks(columns / packing).zip(to.chunks_mut(columns));
    for (row, (from, to)) in rows.enumerate() {
        let blocks = from.chunks(block / packing).zip(to.chunks_mut(block));
        for (number, (from, to)) in blocks.enumerate() {
            let scale = scale(row, number);
            for (to, &code) in to.chunks_mut(packing).zip(from) {
                match format {
                    BlockFormat::Fp8Ue8m0 | BlockFormat::Mxfp8 => {
                        to[0] = table[usize::from(code)] * scale
                    }
                    BlockFormat::Nvfp4 | BlockFormat::Mxfp4 => {
                        to.copy_from_slice(&e2m1::decode_pair(code).map(|value| value * scale));
                    }
                }
            }
        }
    }
}

/// e4m3 values with a scale per 128 or per 32, or pairs of e2m1 values with one per 16 or per 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFormat {
    Fp8Ue8m0,
    Mxfp8,
    Nvfp4,
    Mxfp4,
}

/// The value of every e4m3 code.
fn fp8_table() -> [f32; 256] {
    std::array::from_fn(|code| {
        let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
        let (exponent, mantissa) = ((code >> 3 & 0xF) as i32, (code & 7) as f32);
        let magnitude = match (exponent, code & 7) {
            (15, 7) => f32::NAN,
            (0, _) => mantissa / 8.0 * 2f32.powi(-6),
            _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
        };
        sign * magnitude
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_codes_have_their_values() {
        let table = fp8_table();
        assert_eq!((table[0], table[1], table[0x38]), (0.0, 2f32.powi(-9), 1.0));
        assert_eq!((table[0x7E], table[0xFE]), (448.0, -448.0));
        assert!(table[0x7F].is_nan() && table[0xFF].is_nan());
    }

    #[test]
    fn blocks_of_all_formats() {
        let mut to = [0.0; 64];
        let scale = |row: usize, block: usize| (1 + row * 2 + block) as f32;
        widen_blocks(&[0x38; 64], 64, BlockFormat::Mxfp8, scale, &mut to);
        assert_eq!((to[31], to[32]), (1.0, 2.0));
        // 1 and -6.
        widen_blocks(&[0xf2; 32], 32, BlockFormat::Nvfp4, scale, &mut to);
        assert_eq!((to[0], to[1], to[16], to[63]), (1.0, -6.0, 2.0, -24.0));
        widen_blocks(&[0xf2; 32], 64, BlockFormat::Mxfp4, scale, &mut to);
        assert_eq!((to[31], to[32], to[63]), (-6.0, 2.0, -12.0));
        let mut to = [0.0; 256];
        widen_blocks(&[0x38; 256], 256, BlockFormat::Fp8Ue8m0, scale, &mut to);
        assert_eq!((to[127], to[128]), (1.0, 2.0));
    }

    #[test]
    fn scales_of_rows_and_of_blocks_of_rows() {
        let codes = [0x38u8; 8];
        let mut to = [0.0; 8];
        // Two rows of four; one scale per two elements of a row, laid out block by block.
        let scales = Scales {
            values: &[1.0, 2.0, 4.0, 8.0],
            block: 2,
            block_stride: 2,
            rows: 1,
            row_stride: 1,
        };
        widen_fp8(&codes, 4, scales, &mut to);
        assert_eq!(to, [1.0, 1.0, 4.0, 4.0, 2.0, 2.0, 8.0, 8.0]);
        // One scale for both rows per two elements.
        let scales = Scales {
            values: &[3.0, 5.0],
            block: 2,
            block_stride: 1,
            rows: 2,
            row_stride: 2,
        };
        widen_fp8(&codes, 4, scales, &mut to);
        assert_eq!(to, [3.0, 3.0, 5.0, 5.0, 3.0, 3.0, 5.0, 5.0]);
    }
}
