//! Our product: 4 x 4 register tiles, distributed over threads.
//!
//! k is contiguous in both operands, so a tile is sixteen dot products over the same eight streams:
//! no packing is needed, and every load is used four times.

use rayon::prelude::*;

use crate::Sizes;

const ROWS: usize = 4;
const COLUMNS: usize = 4;
const LANES: usize = 8;
/// Columns whose rows of b stay in cache while all rows of a task pass.
const COLUMN_BLOCK: usize = 64;
const ROW_BLOCK: usize = 32;

pub fn multiply(sizes: Sizes, a: &[f32], b: &[f32], out: &mut [f32]) {
    sizes.check(a, b, out);
    let Sizes { n, k, .. } = sizes;
    out.par_chunks_mut(ROW_BLOCK * n)
        .zip(a.par_chunks(ROW_BLOCK * k))
        .for_each(|(out, a)| block(n, k, a, b, out));
}

/// All columns of a few rows.
fn block(n: usize, k: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
    let rows = a.len() / k;
    for first_column in (0..n).step_by(COLUMN_BLOCK) {
        let end = n.min(first_column + COLUMN_BLOCK);
        for row in (0..rows).step_by(ROWS) {
            for column in (first_column..end).step_by(COLUMNS) {
                // At the edges a tile repeats its last row or column and drops the excess.
                let a = std::array::from_fn(|i| &a[(row + i).min(rows - 1) * k..][..k]);
                let b = std::array::from_fn(|i| &b[(column + i).min(end - 1) * k..][..k]);
                let tile = tile(a, b);
                for (i, line) in tile.iter().enumerate().take(rows - row) {
                    let width = COLUMNS.min(end - column);
                    out[(row + i) * n + column..][..width].copy_from_slice(&line[..width]);
                }
            }
        }
    }
}

type Tile = [[f32; COLUMNS]; ROWS];

fn tile(a: [&[f32]; ROWS], b: [&[f32]; COLUMNS]) -> Tile {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU supports these instructions, and all lines are of one length.
        return unsafe { avx512::tile(a, b) };
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU supports these instructions.
        return unsafe { tile_avx2(a, b) };
    }
    dot_products(a, b, |x, y, sum| x * y + sum)
}

/// Sixteen sums and eight lines fit the registers, as they do not in AVX2.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_maskz_loadu_ps, _mm512_reduce_add_ps,
        _mm512_setzero_ps,
    };

    use super::{Tile, COLUMNS, ROWS};

    /// Terms per instruction and line.
    const DEPTH: usize = 16;

    /// # Safety
    /// The CPU has these instructions, and all lines are of one length.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn tile(a: [&[f32]; ROWS], b: [&[f32]; COLUMNS]) -> Tile {
        let k = a[0].len();
        let mut sums = [[_mm512_setzero_ps(); COLUMNS]; ROWS];
        let whole = k / DEPTH * DEPTH;
        for start in (0..whole).step_by(DEPTH) {
            // SAFETY: DEPTH elements from `start` on are in every line.
            let load = |line: &[f32]| unsafe { _mm512_loadu_ps(line.as_ptr().add(start)) };
            step(&mut sums, a.map(load), b.map(load));
        }
        if whole < k {
            let mask = u16::MAX >> (DEPTH - (k - whole));
            // SAFETY: the mask leaves out what is past the end of the line.
            let load =
                |line: &[f32]| unsafe { _mm512_maskz_loadu_ps(mask, line.as_ptr().add(whole)) };
            step(&mut sums, a.map(load), b.map(load));
        }
        sums.map(|line| line.map(|sum| _mm512_reduce_add_ps(sum)))
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn step(sums: &mut [[__m512; COLUMNS]; ROWS], a: [__m512; ROWS], b: [__m512; COLUMNS]) {
        for (line, a) in sums.iter_mut().zip(a) {
            for (sum, b) in line.iter_mut().zip(b) {
                *sum = _mm512_fmadd_ps(a, b, *sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile_avx2(a: [&[f32]; ROWS], b: [&[f32]; COLUMNS]) -> Tile {
    dot_products(a, b, f32::mul_add)
}

#[inline(always)]
fn dot_products(
    a: [&[f32]; ROWS],
    b: [&[f32]; COLUMNS],
    add: impl Fn(f32, f32, f32) -> f32,
) -> Tile {
    let k = a[0].len();
    let whole = k / LANES * LANES;
    let mut sums = [[[0f32; LANES]; COLUMNS]; ROWS];
    for start in (0..whole).step_by(LANES) {
        let lanes = |row: &[f32]| -> [f32; LANES] {
            row[start..start + LANES]
                .try_into()
                .expect("LANES elements")
        };
        let (a, b) = (a.map(lanes), b.map(lanes));
        for i in 0..ROWS {
            for j in 0..COLUMNS {
                for lane in 0..LANES {
                    sums[i][j][lane] = add(a[i][lane], b[j][lane], sums[i][j][lane]);
                }
            }
        }
    }
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let tail: f32 = (whole..k).map(|at| a[i][at] * b[j][at]).sum();
            sums[i][j].iter().sum::<f32>() + tail
        })
    })
}
