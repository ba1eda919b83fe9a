//! MXFP8, NVFP4 and MXFP4: scales of 32, of 16 and of 32 values of a row, in tiles of 128 rows by 4 scales.
//!
//! ```text
//! MXFP8  scale = 2^n from max(largest |x| / 448, 2^-126) up    quantized = e4m3(x * (1 / scale))
//! NVFP4  scale = e4m3(largest |x| / 6 / tensor scale)          quantized = e2m1(x * (1 / (scale * tensor scale)))
//! MXFP4  scale = 2^n from max(largest |x| / 6, 2^-126) up      quantized = e2m1(x * (1 / scale))
//! ```
//!
//! Padding of the tiles is zero. A group that holds a NaN or an infinity gets the scale NaN; its elements become
//! NaN, or +6 where the format has none.

use host::{e2m1, e4m3};
use rayon::prelude::*;

use crate::{largest, scale_to, Element, Scale, Ue8m0};

/// Rows of a tile of scales, and scales of a row.
const TILE: (usize, usize) = (128, 4);
const TILE_SCALES: usize = TILE.0 * TILE.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    Mxfp8,
    /// With the scale of the tensor.
    Nvfp4(f32),
    Mxfp4,
}

impl Format {
    /// Elements that share a scale.
    pub fn block(self) -> usize {
        match self {
            Format::Mxfp8 | Format::Mxfp4 => 32,
            Format::Nvfp4(_) => 16,
        }
    }

    /// Elements of a byte.
    pub fn packing(self) -> usize {
        match self {
            Format::Mxfp8 => 1,
            Format::Nvfp4(_) | Format::Mxfp4 => 2,
        }
    }

    /// The code of the scale of a group, and what its elements are multiplied by.
    fn scale(self, largest: f32) -> (u8, f32) {
        match self {
            Format::Mxfp8 => {
                let scale = Ue8m0::of(largest);
                (scale.0, 1.0 / scale.value())
            }
            Format::Mxfp4 => {
                let scale = Ue8m0::up_from(scale_to(6.0, largest));
                (scale.0, 1.0 / scale.value())
            }
            Format::Nvfp4(of_tensor) => {
                let exact = if largest.is_finite() {
                    largest / 6.0 / of_tensor
                } else {
                    f32::NAN
                };
                let code = e4m3::encode(exact) & 0x7f;
                let inverse = match code {
                    0 => 0.0,
                    code => 1.0 / (e4m3::decode(code) * of_tensor),
                };
                (code, inverse)
            }
        }
    }

    /// The value of a scale's code, that of the tensor included.
    pub fn value(self, code: u8) -> f32 {
        match self {
            Format::Mxfp8 | Format::Mxfp4 => Ue8m0(code).value(),
            Format::Nvfp4(of_tensor) => e4m3::decode(code & 0x7f) * of_tensor,
        }
    }

    fn encode(self, values: &[f32], inverse: f32, out: &mut [u8]) {
        match self {
            Format::Mxfp8 => {
                for (x, out) in values.iter().zip(out) {
                    *out = e4m3::encode(x * inverse);
                }
            }
            Format::Nvfp4(_) | Format::Mxfp4 => {
                for (pair, out) in values.chunks_exact(2).zip(out) {
                    *out = e2m1::encode_pair(pair[0] * inverse, pair[1] * inverse);
                }
            }
        }
    }

    fn decode(self, codes: &[u8], scale: f32, out: &mut [f32]) {
        match self {
            Format::Mxfp8 => {
                for (code, out) in codes.iter().zip(out) {
                    *out = e4m3::decode(*code) * scale;
                }
            }
            Format::Nvfp4(_) | Format::Mxfp4 => {
                for (code, out) in codes.iter().zip(out.chunks_exact_mut(2)) {
                    out.copy_from_slice(&e2m1::decode_pair(*code).map(|value| value * scale));
                }
            }
        }
    }
}

/// Where the scale of a block of a row lies, with `blocks` per row.
pub fn scale_place(row: usize, block: usize, blocks: usize) -> usize {
    let tile = row / TILE.0 * blocks.div_ceil(TILE.1) + block / TILE.1;
    tile * TILE_SCALES + row % 32 * 16 + row % TILE.0 / 32 * 4 + block % TILE.1
}

/// `columns` is even for pairs; `scales` has whole tiles.
pub fn quantize<T: Element>(
    x: &[T],
    quantized: &mut [u8],
    scales: &mut [u8],
    columns: usize,
    format: Format,
) {
    quantize_rows(x, quantized, scales, columns, format, T::widen_all);
}

/// The same of what `widen` makes of each row.
pub(crate) fn quantize_rows<T: Element>(
    x: &[T],
    quantized: &mut [u8],
    scales: &mut [u8],
    columns: usize,
    format: Format,
    widen: impl Fn(&[T], &mut [f32]) + Sync,
) {
    let blocks = columns.div_ceil(format.block());
    let line = columns / format.packing();
    let bands = quantized
        .par_chunks_mut(TILE.0 * line)
        .zip(scales.par_chunks_mut(TILE_SCALES * blocks.div_ceil(TILE.1)))
        .zip(x.par_chunks(TILE.0 * columns));
    bands.for_each_init(
        || vec![0.0; columns],
        |wide, ((quantized, scales), x)| {
            scales.fill(0);
            let rows = x.chunks(columns).zip(quantized.chunks_mut(line));
            for (row, (x, quantized)) in rows.enumerate() {
                widen(x, wide);
                let groups = wide.chunks(format.block());
                let groups = groups.zip(quantized.chunks_mut(format.block() / format.packing()));
                for (block, (values, out)) in groups.enumerate() {
                    let (code, inverse) = format.scale(largest(values));
                    scales[scale_place(row, block, blocks)] = code;
                    format.encode(values, inverse, out);
                }
            }
        },
    );
}

/// The inverse.
pub fn dequantize<T: Element>(
    quantized: &[u8],
    scales: &[u8],
    out: &mut [T],
    columns: usize,
    format: Format,
) {
    let blocks = columns.div_ceil(format.block());
    let line = columns / format.packing();
    let rows = out.par_chunks_mut(columns).zip(quantized.par_chunks(line));
    rows.enumerate().for_each_init(
        || vec![0.0; columns],
        |wide, (row, (out, quantized))| {
            let groups = wide.chunks_mut(format.block());
            let groups = groups.zip(quantized.chunks(format.block() / format.packing()));
            for (block, (wide, codes)) in groups.enumerate() {
                let scale = format.value(scales[scale_place(row, block, blocks)]);
                format.decode(codes, scale, wide);
            }
            T::narrow_all(wide, out);
        },
    );
}

/// One naive single-threaded loop per operation.
pub mod plain {
    use super::*;

    pub fn quantize<T: Element>(
        x: &[T],
        quantized: &mut [u8],
        scales: &mut [u8],
        columns: usize,
        format: Format,
    ) {
        let (rows, blocks) = (x.len() / columns, columns.div_ceil(format.block()));
        scales.fill(0);
        quantized.fill(0);
        for (row, block) in (0..rows).flat_map(|row| (0..blocks).map(move |block| (row, block))) {
            let first = block * format.block();
            let group = first..columns.min(first + format.block());
            let value = |column: usize| x[row * columns + column].widen();
            let mut largest = 0.0f32;
            for column in group.clone() {
                let magnitude = value(column).abs();
                largest = if magnitude.is_finite() {
                    largest.max(magnitude)
                } else {
                    f32::INFINITY
                };
            }
            let (code, inverse) = format.scale(largest);
            scales[scale_place(row, block, blocks)] = code;
            for column in group {
                let place = row * columns + column;
                let scaled = value(column) * inverse;
                match format {
                    Format::Mxfp8 => quantized[place] = e4m3::encode(scaled),
                    Format::Nvfp4(_) | Format::Mxfp4 => {
                        quantized[place / 2] |= e2m1::encode(scaled) << (place % 2 * 4);
                    }
                }
            }
        }
    }

    pub fn dequantize<T: Element>(
        quantized: &[u8],
        scales: &[u8],
        out: &mut [T],
        columns: usize,
        format: Format,
    ) {
        let blocks = columns.div_ceil(format.block());
        for (place, out) in out.iter_mut().enumerate() {
            let (row, block) = (place / columns, place % columns / format.block());
            let element = match format {
                Format::Mxfp8 => e4m3::decode(quantized[place]),
                Format::Nvfp4(_) | Format::Mxfp4 => {
                    e2m1::decode(quantized[place / 2] >> (place % 2 * 4))
                }
            };
            let scale = format.value(scales[scale_place(row, block, blocks)]);
            *out = T::narrow(element * scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: usize = 48;
    const FORMATS: [Format; 3] = [Format::Mxfp8, Format::Nvfp4(0.25), Format::Mxfp4];

    /// Codes, scales, and the values they stand for; threaded and plain agree.
    fn run(x: &[f32], format: Format) -> (Vec<u8>, Vec<u8>, Vec<f32>) {
        let rows = x.len() / COLUMNS;
        let count =
            rows.next_multiple_of(128) * COLUMNS.div_ceil(format.block()).next_multiple_of(4);
        let room = || (vec![0xa5; x.len() / format.packing()], vec![0xa5; count]);
        let (mut codes, mut scales) = room();
        quantize(x, &mut codes, &mut scales, COLUMNS, format);
        let (mut plain_codes, mut plain_scales) = room();
        plain::quantize(x, &mut plain_codes, &mut plain_scales, COLUMNS, format);
        assert_eq!((&codes, &scales), (&plain_codes, &plain_scales));
        let (mut back, mut plain_back) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        dequantize(&codes, &scales, &mut back, COLUMNS, format);
        plain::dequantize(&codes, &scales, &mut plain_back, COLUMNS, format);
        let bits = |values: &[f32]| {
            values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&back), bits(&plain_back));
        (codes, scales, back)
    }

    #[test]
    fn values_come_back_within_a_step() {
        let x: Vec<f32> = (0..130 * COLUMNS)
            .map(|index| ((index * 7919) % 1009) as f32 / 504.0 - 1.0)
            .collect();
        for (format, step) in FORMATS.into_iter().zip([1.0 / 14.0, 1.0 / 3.0, 0.5]) {
            let (_, scales, back) = run(&x, format);
            assert!(back
                .iter()
                .zip(&x)
                .all(|(a, b)| (a - b).abs() <= step * b.abs().max(0.2)));
            // Rows past the end.
            let blocks = COLUMNS.div_ceil(format.block());
            assert_eq!(scales[scale_place(130, 0, blocks)], 0);
            assert_ne!(scales[scale_place(129, 0, blocks)], 0);
        }
    }

    #[test]
    fn zeros_and_constants() {
        for format in FORMATS {
            let (codes, scales, back) = run(&[0.0; COLUMNS], format);
            assert!(codes.iter().all(|code| *code == 0));
            assert_eq!(back, [0.0; COLUMNS]);
            let powers = format != Format::Nvfp4(0.25);
            let zero = if powers { 1 } else { 0 };
            assert_eq!(scales[0], zero);
            let (_, _, back) = run(&[0.75; COLUMNS], format);
            assert_eq!(back, [0.75; COLUMNS]);
            let tiny = f32::MIN_POSITIVE / 4.0;
            let (_, _, back) = run(&[tiny; COLUMNS], format);
            // A quarter is a tie of e2m1 between 0 and a half, and 0 is even.
            let kept = if format == Format::Mxfp8 { tiny } else { 0.0 };
            assert_eq!(back, [kept; COLUMNS]);
        }
    }

    #[test]
    fn what_is_not_finite_spoils_its_group_and_no_other() {
        for fault in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for format in FORMATS {
                let mut x = [0.75; COLUMNS];
                x[35] = fault;
                let (_, _, back) = run(&x, format);
                assert!(back[..32].iter().all(|value| *value == 0.75));
                assert!(back[32..].iter().all(|value| value.is_nan()));
            }
        }
    }
}
