//! Fused multiply-add over lanes, with the processor's own instruction where it has one.

use crate::op::Words;

fn portable(a: &Words, b: &Words, c: &Words) -> Words {
    std::array::from_fn(|lane| {
        let [a, b, c] = [a[lane], b[lane], c[lane]].map(f32::from_bits);
        a.mul_add(b, c).to_bits()
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_fma(a: &Words, b: &Words, c: &Words) -> Words {
    portable_inline(a, b, c)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn portable_inline(a: &Words, b: &Words, c: &Words) -> Words {
    std::array::from_fn(|lane| {
        let [a, b, c] = [a[lane], b[lane], c[lane]].map(f32::from_bits);
        a.mul_add(b, c).to_bits()
    })
}

pub fn fma(a: &Words, b: &Words, c: &Words) -> Words {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has what the function needs.
        return unsafe { with_fma(a, b, c) };
    }
    portable(a, b, c)
}

/// Columns and rows of a tile whose sums stay in registers.
const WIDE: usize = 16;
const HIGH: usize = 4;

#[inline(always)]
fn tile_inline<const ROWS: usize>(sums: &mut [f32], a: &[f32], b: &[f32], columns: usize) {
    let depth = a.len() / ROWS;
    for first in (0..columns).step_by(WIDE) {
        let count = WIDE.min(columns - first);
        let mut tile = [[0f32; WIDE]; ROWS];
        let mut row = [0f32; WIDE];
        for k in 0..depth {
            match b[k * columns + first..].first_chunk::<WIDE>() {
                Some(whole) if count == WIDE => row = *whole,
                _ => row[..count].copy_from_slice(&b[k * columns + first..][..count]),
            }
            for (high, tile) in tile.iter_mut().enumerate() {
                let factor = a[high * depth + k];
                for (sum, value) in tile.iter_mut().zip(row) {
                    *sum = factor.mul_add(value, *sum);
                }
            }
        }
        for (high, tile) in tile.iter().enumerate() {
            sums[high * columns + first..][..count].copy_from_slice(&tile[..count]);
        }
    }
}

#[inline(always)]
fn product_inline(sums: &mut [f32], a: &[f32], b: &[f32], columns: usize) {
    let depth = b.len() / columns;
    let whole = sums.len() / columns / HIGH * HIGH;
    let (tall, low) = sums.split_at_mut(whole * columns);
    let (a_tall, a_low) = a.split_at(whole * depth);
    for (sums, a) in tall
        .chunks_exact_mut(HIGH * columns)
        .zip(a_tall.chunks_exact(HIGH * depth))
    {
        tile_inline::<HIGH>(sums, a, b, columns);
    }
    for (sums, a) in low.chunks_exact_mut(columns).zip(a_low.chunks_exact(depth)) {
        tile_inline::<1>(sums, a, b, columns);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,fma")]
fn product_with_avx512(sums: &mut [f32], a: &[f32], b: &[f32], columns: usize) {
    product_inline(sums, a, b, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn product_with_avx2(sums: &mut [f32], a: &[f32], b: &[f32], columns: usize) {
    product_inline(sums, a, b, columns);
}

/// A product of matrices, `sums[i][j] = sum of a[i][k] * b[k][j]`, k upwards. Operands of a tensor core have so few
/// digits that their products are exact, so that fusing changes nothing.
pub fn product(sums: &mut [f32], a: &[f32], b: &[f32], columns: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has what the function needs.
            return unsafe { product_with_avx512(sums, a, b, columns) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { product_with_avx2(sums, a, b, columns) };
        }
    }
    product_inline(sums, a, b, columns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_make_no_difference() {
        for (rows, columns, depth) in [(16, 8, 16), (5, 24, 8), (128, 128, 16), (3, 17, 32)] {
            let value = |at: usize| (at * 37 % 101) as f32 - 50.0;
            let a: Vec<f32> = (0..rows * depth).map(value).collect();
            let b: Vec<f32> = (0..depth * columns).map(|at| value(at + 7)).collect();
            let mut sums = vec![f32::NAN; rows * columns];
            product(&mut sums, &a, &b, columns);
            for (at, sum) in sums.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let right: f32 = (0..depth)
                    .map(|k| a[row * depth + k] * b[k * columns + column])
                    .sum();
                assert_eq!(*sum, right, "{rows}x{columns}x{depth} at {at}");
            }
        }
    }
}
