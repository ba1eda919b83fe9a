//! RMSNorm and quantisation in one, with one f32 scale per 128 elements of a row, or to MXFP8 and NVFP4: threaded over
//! rows, and, in [`plain`], as naive loops.
//!
//! ```text
//! y = x * (1 / sqrt(mean of x^2 in the row + epsilon)) * weight      in f32, then quantised
//! ```
//!
//! For MXFP8 and NVFP4, whose scales are rounded, the inverse of the root is rounded once from f64: there is one right
//! answer, whatever the order of the sum.

use host::{e4m3, each_row2, sum, vectorized};

use crate::blocks::{quantize_rows, Format};
use crate::{largest, Element, Scale};

/// Elements that share a scale.
const GROUP: usize = 128;

/// `scales` has one for each group of a row; the last may hold fewer elements.
pub fn quantize<T: Element>(
    x: &[T],
    weight: &[T],
    quantized: &mut [u8],
    scales: &mut [f32],
    epsilon: f32,
) {
    let columns = weight.len();
    let mut wide = vec![0.0; columns];
    T::widen_all(weight, &mut wide);
    each_row2(
        (quantized, columns),
        (scales, columns.div_ceil(GROUP)),
        columns,
        |row, quantized, scales, buffer| {
            let x = &x[row * columns..][..columns];
            quantize_row(x, &wide, quantized, scales, buffer, epsilon);
        },
    );
}

/// `scales` has whole tiles.
pub fn quantize_tiled<T: Element>(
    x: &[T],
    weight: &[T],
    quantized: &mut [u8],
    scales: &mut [u8],
    epsilon: f32,
    format: Format,
) {
    let columns = weight.len();
    let mut wide = vec![0.0; columns];
    T::widen_all(weight, &mut wide);
    quantize_rows(x, quantized, scales, columns, format, |x, norm| {
        T::widen_all(x, norm);
        let rstd = exact_rstd(norm.iter().copied(), epsilon);
        for (value, weight) in norm.iter_mut().zip(&wide) {
            *value = *value * rstd * weight;
        }
    });
}

fn exact_rstd(row: impl ExactSizeIterator<Item = f32>, epsilon: f32) -> f32 {
    let columns = row.len() as f64;
    let squares: f64 = row.map(|value| f64::from(value).powi(2)).sum();
    (1.0 / (squares / columns + f64::from(epsilon)).sqrt()) as f32
}

vectorized! {
    fn quantize_row<T: Element>(
        x: &[T],
        weight: &[f32],
        quantized: &mut [u8],
        scales: &mut [f32],
        buffer: &mut [f32],
        epsilon: f32,
    ) {
        T::widen_all(x, buffer);
        let rstd = 1.0 / (sum(buffer, |value| value * value) / buffer.len() as f32 + epsilon).sqrt();
        for (value, weight) in buffer.iter_mut().zip(weight) {
            *value = *value * rstd * weight;
        }
        let groups = buffer.chunks(GROUP).zip(quantized.chunks_mut(GROUP));
        for ((values, codes), scale) in groups.zip(scales) {
            *scale = f32::of(largest(values));
            let inverse = 1.0 / *scale;
            for (value, code) in values.iter().zip(codes) {
                *code = e4m3::encode(value * inverse);
            }
        }
    }
}

/// Naive single-threaded loops.
pub mod plain {
    use host::e4m3;

    use super::{exact_rstd, GROUP};
    use crate::blocks::{self, Format};
    use crate::{Element, Scale};

    /// The norm, then its quantisation.
    pub fn quantize_tiled<T: Element>(
        x: &[T],
        weight: &[T],
        quantized: &mut [u8],
        scales: &mut [u8],
        epsilon: f32,
        format: Format,
    ) {
        let columns = weight.len();
        let mut norm = Vec::with_capacity(x.len());
        for x in x.chunks(columns) {
            let rstd = exact_rstd(x.iter().map(|x| x.widen()), epsilon);
            let pairs = x.iter().zip(weight);
            norm.extend(pairs.map(|(x, weight)| x.widen() * rstd * weight.widen()));
        }
        blocks::plain::quantize(&norm, quantized, scales, columns, format);
    }

    pub fn quantize<T: Element>(
        x: &[T],
        weight: &[T],
        quantized: &mut [u8],
        scales: &mut [f32],
        epsilon: f32,
    ) {
        let columns = weight.len();
        let across = columns.div_ceil(GROUP);
        for (row, x) in x.chunks(columns).enumerate() {
            // In f64, because a plain f32 running sum over a long row would fail the gate.
            let squares: f64 = x.iter().map(|x| f64::from(x.widen()).powi(2)).sum();
            let rstd = 1.0 / ((squares / columns as f64) as f32 + epsilon).sqrt();
            let norm = |column: usize| x[column].widen() * rstd * weight[column].widen();
            for group in 0..across {
                let range = group * GROUP..columns.min((group + 1) * GROUP);
                let mut largest = 0.0f32;
                for value in range.clone().map(norm) {
                    largest = match value.is_finite() {
                        true => largest.max(value.abs()),
                        false => f32::INFINITY,
                    };
                }
                let scale = f32::of(largest);
                scales[row * across + group] = scale;
                for column in range {
                    quantized[row * columns + column] = e4m3::encode(norm(column) * (1.0 / scale));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Run = fn(&[f32], &[f32], &mut [u8], &mut [f32], f32);
    const RUNS: [Run; 2] = [quantize::<f32>, plain::quantize::<f32>];

    /// Codes and scales of both.
    fn run(x: &[f32], weight: &[f32]) -> [(Vec<u8>, Vec<f32>); 2] {
        let rows = x.len() / weight.len();
        RUNS.map(|run| {
            let mut codes = vec![0; x.len()];
            let mut scales = vec![0.0; rows * weight.len().div_ceil(GROUP)];
            run(x, weight, &mut codes, &mut scales, 1e-6);
            (codes, scales)
        })
    }

    #[test]
    fn groups_of_a_normalised_row_have_their_own_scales() {
        // A row of ones, whose root mean square is 1, and of twos, which are ones after the norm.
        let x: Vec<f32> = (0..2 * 144)
            .map(|at| if at < 144 { 1.0 } else { -2.0 })
            .collect();
        let weight: Vec<f32> = (0..144)
            .map(|at| if at < 128 { 0.5 } else { 4.0 })
            .collect();
        for (codes, scales) in run(&x, &weight) {
            for (scale, wanted) in scales.iter().zip([0.5, 4.0, 0.5, 4.0]) {
                assert!((scale * 448.0 - wanted).abs() < 1e-5, "{scale}");
            }
            assert!(codes[..144].iter().all(|&code| code == 0x7E), "448");
            assert!(codes[144..].iter().all(|&code| code == 0xFE), "-448");
        }
    }

    #[test]
    fn rounded_scales_are_those_of_the_norm() {
        // Root mean squares of 2 and of 1/2, but for epsilon; 48 columns leave half a group of 32.
        let x: Vec<f32> = (0..96)
            .map(|at| [2.0, 0.5][at / 48] * [1.0, -1.0][at % 2])
            .collect();
        let weight: Vec<f32> = (0..48).map(|at| [1.0, 4.0, 0.25][at / 16]).collect();
        let formats = [Format::Mxfp8, Format::Nvfp4(1.0 / 64.0)];
        for format in formats {
            let [threaded, plain] =
                [quantize_tiled::<f32>, plain::quantize_tiled::<f32>].map(|run| {
                    let (mut codes, mut scales) =
                        (vec![0xa5; 96 / format.packing()], vec![0xa5; 512]);
                    run(&x, &weight, &mut codes, &mut scales, 1e-6, format);
                    (codes, scales)
                });
            assert_eq!(threaded, plain, "{format:?}");
            let mut back = vec![0.0; 96];
            crate::blocks::dequantize(&threaded.0, &threaded.1, &mut back, 48, format);
            for (at, back) in back.iter().enumerate() {
                let wanted = x[at].signum() * weight[at % 48];
                assert!(
                    (back / wanted - 1.0).abs() < 0.07,
                    "{format:?}: {back}, not {wanted}"
                );
            }
        }
    }

    #[test]
    fn zeros_stay_zeros_and_a_fault_spoils_its_row_alone() {
        let mut x = vec![1.0; 3 * 256];
        x[256..512].fill(0.0);
        x[700] = f32::NAN;
        for (codes, scales) in run(&x, &[1.0; 256]) {
            assert_eq!(
                (&codes[256..512], scales[2]),
                (&[0; 256][..], f32::MIN_POSITIVE)
            );
            assert!(codes[512..].iter().all(|code| code & 0x7f == 0x7f));
            assert!(scales[4].is_nan() && scales[5].is_nan() && scales[1].is_finite());
        }
    }
}
