//! Quantisation to FP8 e4m3 and FP4 e2m1 and back on the CPU: threaded over rows of groups and written for
//! auto-vectorisation, and, in [`plain`], as one naive loop each.
//!
//! ```text
//! scale     = max(largest |x| / 448, 2^-126)         rounded up to a power of two for UE8M0
//! quantized = e4m3(x * (1 / scale))                  saturating
//! ```
//!
//! A group that holds a NaN or an infinity gets the scale NaN, and all its elements become NaN. MXFP8,
//! NVFP4 and MXFP4, whose scales lie in tiles, are in [`blocks`], and quantisation of an RMSNorm in [`norm`].

pub mod blocks;
pub mod norm;
pub mod plain;

use host::e4m3;
pub use host::{Element, Plain};
use rayon::prelude::*;

/// A type that scales are stored in.
pub trait Scale: Plain {
    /// The scale of a group with this largest magnitude; infinity for one that is not finite.
    fn of(largest: f32) -> Self;
    fn value(self) -> f32;
}

fn exact_scale(largest: f32) -> f32 {
    scale_to(448.0, largest)
}

/// The scale that brings the largest magnitude to `most`.
fn scale_to(most: f32, largest: f32) -> f32 {
    if largest.is_finite() {
        (largest / most).max(f32::MIN_POSITIVE)
    } else {
        f32::NAN
    }
}

impl Scale for f32 {
    fn of(largest: f32) -> Self {
        exact_scale(largest)
    }
    fn value(self) -> f32 {
        self
    }
}

/// A power of two as its biased exponent; 0xff is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ue8m0(pub u8);

// SAFETY: a transparent byte.
unsafe impl Plain for Ue8m0 {}

impl Ue8m0 {
    /// The next power of two from a scale on.
    fn up_from(scale: f32) -> Self {
        // Carries into the exponent unless the mantissa is zero.
        let up = if scale.is_nan() { 0 } else { 0x007f_ffff };
        Self(((scale.to_bits() + up) >> 23) as u8)
    }
}

impl Scale for Ue8m0 {
    fn of(largest: f32) -> Self {
        Self::up_from(exact_scale(largest))
    }
    fn value(self) -> f32 {
        match self.0 {
            0 => f32::MIN_POSITIVE / 2.0,
            0xff => f32::NAN,
            code => f32::from_bits(u32::from(code) << 23),
        }
    }
}

/// Columns of the matrix, and rows and columns that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    pub columns: usize,
    pub tile_rows: usize,
    pub tile_columns: usize,
}

impl Tiling {
    fn across(self) -> usize {
        self.columns.div_ceil(self.tile_columns)
    }
    /// Elements of all tiles side by side.
    fn band(self) -> usize {
        self.tile_rows * self.columns
    }
}

/// The largest magnitude; infinity if a value is not finite.
fn largest(values: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [0u32; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    // Magnitudes keep their order as integers, and a NaN is the largest.
    let magnitude = |value: f32| value.abs().to_bits();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane].max(magnitude(chunk[lane]));
        }
    }
    let rest = rest.iter().map(|&value| magnitude(value)).max();
    let bits = lanes.into_iter().chain(rest).max().unwrap_or(0);
    f32::from_bits(bits.min(f32::INFINITY.to_bits()))
}

pub fn quantize<T: Element, S: Scale>(
    x: &[T],
    quantized: &mut [u8],
    scales: &mut [S],
    tiling: Tiling,
) {
    let (band, columns) = (tiling.band(), tiling.columns);
    let bands = quantized
        .par_chunks_mut(band)
        .zip(scales.par_chunks_mut(tiling.across()))
        .zip(x.par_chunks(band));
    bands.for_each_init(
        || vec![0.0; band],
        |wide, ((quantized, scales), x)| {
            let wide = &mut wide[..x.len()];
            T::widen_all(x, wide);
            for (tile, scale) in scales.iter_mut().enumerate() {
                let first = tile * tiling.tile_columns;
                let range = first..columns.min(first + tiling.tile_columns);
                let rows = wide.chunks(columns);
                let top = rows.map(|row| largest(&row[range.clone()]));
                *scale = S::of(top.fold(0.0, f32::max));
                let inverse = 1.0 / scale.value();
                for (row, out) in wide.chunks(columns).zip(quantized.chunks_mut(columns)) {
                    for (x, out) in row[range.clone()].iter().zip(&mut out[range.clone()]) {
                        *out = e4m3::encode(x * inverse);
                    }
                }
            }
        },
    );
}

pub fn dequantize<T: Element, S: Scale>(
    quantized: &[u8],
    scales: &[S],
    out: &mut [T],
    tiling: Tiling,
) {
    let (band, columns) = (tiling.band(), tiling.columns);
    let bands = out
        .par_chunks_mut(band)
        .zip(scales.par_chunks(tiling.across()))
        .zip(quantized.par_chunks(band));
    bands.for_each_init(
        || vec![0.0; columns],
        |wide, ((out, scales), quantized)| {
            for (codes, out) in quantized.chunks(columns).zip(out.chunks_mut(columns)) {
                let tiles = wide.chunks_mut(tiling.tile_columns);
                let tiles = tiles.zip(codes.chunks(tiling.tile_columns)).zip(scales);
                for ((wide, codes), scale) in tiles {
                    let scale = scale.value();
                    for (wide, &code) in wide.iter_mut().zip(codes) {
                        *wide = e4m3::decode(code) * scale;
                    }
                }
                T::narrow_all(wide, out);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiling(tile_rows: usize, tile_columns: usize) -> Tiling {
        Tiling {
            columns: 5,
            tile_rows,
            tile_columns,
        }
    }

    fn run<S: Scale + PartialEq + std::fmt::Debug>(
        x: &[f32],
        tiling: Tiling,
    ) -> (Vec<u8>, Vec<f32>, Vec<f32>) {
        let scales = x.len().div_ceil(tiling.band()) * tiling.across();
        let mut codes = vec![0; x.len()];
        let mut stored = vec![S::of(0.0); scales];
        quantize(x, &mut codes, &mut stored, tiling);
        let (mut plain_codes, mut plain) = (vec![0; x.len()], vec![S::of(0.0); scales]);
        plain::quantize(x, &mut plain_codes, &mut plain, tiling);
        assert_eq!(codes, plain_codes);
        let mut back = vec![0.0; x.len()];
        dequantize(&codes, &stored, &mut back, tiling);
        let values = stored.iter().map(|scale| scale.value()).collect();
        (codes, values, back)
    }

    #[test]
    fn tiles_have_their_own_scales() {
        let x: Vec<f32> = (0..15).map(|index| index as f32).collect();
        let (_, scales, back) = run::<f32>(&x, tiling(1, 5));
        assert_eq!(scales, [4.0 / 448.0, 9.0 / 448.0, 14.0 / 448.0]);
        assert!(back.iter().zip(&x).all(|(a, b)| (a - b).abs() <= b / 16.0));
        let (_, scales, _) = run::<f32>(&x, tiling(2, 3));
        assert_eq!(
            scales,
            [7.0, 9.0, 12.0, 14.0].map(|largest: f32| largest / 448.0)
        );
        let (_, scales, back) = run::<Ue8m0>(&x, tiling(1, 3));
        assert_eq!(scales[5], 1.0 / 32.0);
        assert_eq!(back[14], 14.0);
    }

    #[test]
    fn zeros_and_subnormals_stay_what_they_are() {
        let (codes, scales, back) = run::<f32>(&[0.0; 5], tiling(1, 5));
        assert_eq!((codes, scales[0]), (vec![0; 5], f32::MIN_POSITIVE));
        assert_eq!(back, [0.0; 5]);
        let tiny = f32::MIN_POSITIVE / 4.0;
        for (_, scales, back) in [
            run::<f32>(&[tiny, -tiny, 0.0, tiny, tiny], tiling(1, 5)),
            run::<Ue8m0>(&[tiny, -tiny, 0.0, tiny, tiny], tiling(1, 5)),
        ] {
            assert_eq!(scales[0], f32::MIN_POSITIVE);
            assert_eq!(back, [tiny, -tiny, 0.0, tiny, tiny]);
        }
    }

    #[test]
    fn what_is_not_finite_spoils_its_group_and_no_other() {
        for fault in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = [1.0; 10];
            x[7] = fault;
            for (codes, scales, _) in [run::<f32>(&x, tiling(1, 5)), run::<Ue8m0>(&x, tiling(1, 5))]
            {
                assert!(codes[5..].iter().all(|code| code & 0x7f == 0x7f));
                assert!(scales[1].is_nan() && scales[0].is_finite());
                assert!(codes[..5].iter().all(|code| code & 0x7f != 0x7f));
            }
        }
    }
}
