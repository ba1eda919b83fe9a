//! Our product of bf16 operands where the CPU has AVX-512 BF16: without widening them first.
//!
//! A tile is 4 x 4 dot products over the same eight streams, with 32 terms per instruction.

use half::bf16;

use crate::Sizes;

/// Whether [`multiply`] can run here.
pub fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// out[r, c] = sum over i of a[r, i] * b[c, i], rounded once.
///
/// # Panics
/// If it is not available, or sizes are wrong.
#[cfg(target_arch = "x86_64")]
pub fn multiply(sizes: Sizes, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    assert!(is_available(), "no AVX-512 BF16");
    let Sizes { m, n, k } = sizes;
    assert_eq!(a.len(), m * k, "a is not m x k");
    assert_eq!(b.len(), n * k, "b is not n x k");
    assert_eq!(out.len(), m * n, "out is not m x n");
    x86::multiply(sizes, a, b, out);
}

#[cfg(not(target_arch = "x86_64"))]
pub fn multiply(_: Sizes, _: &[bf16], _: &[bf16], _: &mut [bf16]) {
    panic!("no AVX-512 BF16");
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512, __m512bh, _mm512_dpbf16_ps, _mm512_loadu_epi16, _mm512_maskz_loadu_epi16,
        _mm512_reduce_add_ps, _mm512_setzero_ps,
    };

    use half::bf16;
    use rayon::prelude::*;

    use crate::Sizes;

    const ROWS: usize = 4;
    const COLUMNS: usize = 4;
    /// Terms per instruction and stream.
    const DEPTH: usize = 32;
    /// Columns of a task, whose rows of b stay in L2 while rows of a pass.
    const COLUMN_BLOCK: usize = 64;
    const ROW_BLOCK: usize = 128;
    /// Terms of a piece that is worth another thread.
    const PIECE: usize = 1 << 20;

    /// The result, of which each task writes its own rectangle.
    struct Shared(*mut bf16);

    // SAFETY: tasks write disjoint elements.
    unsafe impl Sync for Shared {}

    impl Shared {
        /// # Safety
        /// The index is in the result, and nobody else writes it.
        unsafe fn store(&self, index: usize, value: f32) {
            // SAFETY: the caller's promise.
            unsafe { self.0.add(index).write(bf16::from_f32(value)) }
        }
    }

    pub fn multiply(Sizes { m, n, k }: Sizes, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
        let shared = Shared(out.as_mut_ptr());
        let (down, across) = (m.div_ceil(ROW_BLOCK), n.div_ceil(COLUMN_BLOCK));
        let terms = m.min(ROW_BLOCK) * n.min(COLUMN_BLOCK) * k.max(1);
        let tasks = (0..down * across).into_par_iter();
        let tasks = tasks.with_min_len((PIECE / terms).max(1));
        tasks.for_each(|task| {
            let rows = block(task / across, ROW_BLOCK, m);
            let columns = block(task % across, COLUMN_BLOCK, n);
            for row in rows.clone().step_by(ROWS) {
                for column in columns.clone().step_by(COLUMNS) {
                    // At the edges a tile repeats its last row or column and drops the excess.
                    let a = std::array::from_fn(|i| line(a, k, (row + i).min(rows.end - 1)));
                    let b = std::array::from_fn(|i| line(b, k, (column + i).min(columns.end - 1)));
                    // SAFETY: the CPU has the instructions; all lines have k elements.
                    let tile = unsafe { tile(a, b, k) };
                    for (i, line) in tile.iter().enumerate().take(rows.end - row) {
                        for (j, &value) in line.iter().enumerate().take(columns.end - column) {
                            // SAFETY: inside of the task's rectangle.
                            unsafe { shared.store((row + i) * n + column + j, value) };
                        }
                    }
                }
            }
        });
    }

    fn line(all: &[bf16], k: usize, index: usize) -> &[bf16] {
        &all[index * k..][..k]
    }

    fn block(index: usize, length: usize, end: usize) -> std::ops::Range<usize> {
        index * length..end.min((index + 1) * length)
    }

    type Tile = [[f32; COLUMNS]; ROWS];

    /// # Safety
    /// All lines have k elements, and the CPU has these instructions.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn tile(a: [&[bf16]; ROWS], b: [&[bf16]; COLUMNS], k: usize) -> Tile {
        let mut sums = [[_mm512_setzero_ps(); COLUMNS]; ROWS];
        let whole = k / DEPTH * DEPTH;
        for start in (0..whole).step_by(DEPTH) {
            // SAFETY: DEPTH elements from `start` on are in every line.
            let load = |line: &[bf16]| unsafe {
                std::mem::transmute(_mm512_loadu_epi16(line.as_ptr().add(start).cast()))
            };
            step(&mut sums, a.map(load), b.map(load));
        }
        if whole < k {
            let mask = u32::MAX >> (DEPTH - (k - whole));
            // SAFETY: the mask leaves out what is past the end of the line.
            let load = |line: &[bf16]| unsafe {
                let first = line.as_ptr().add(whole).cast();
                std::mem::transmute(_mm512_maskz_loadu_epi16(mask, first))
            };
            step(&mut sums, a.map(load), b.map(load));
        }
        sums.map(|line| line.map(|sum| _mm512_reduce_add_ps(sum)))
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    #[inline]
    fn step(sums: &mut [[__m512; COLUMNS]; ROWS], a: [__m512bh; ROWS], b: [__m512bh; COLUMNS]) {
        for (line, a) in sums.iter_mut().zip(a) {
            for (sum, b) in line.iter_mut().zip(b) {
                *sum = _mm512_dpbf16_ps(*sum, a, b);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_sums_in_f64() {
        if !is_available() {
            let sizes = Sizes { m: 1, n: 1, k: 1 };
            let one = [bf16::ONE];
            let refused = std::panic::catch_unwind(|| multiply(sizes, &one, &one, &mut [one[0]]));
            return assert!(refused.is_err(), "without its instructions it must refuse");
        }
        for (m, n, k) in [
            (1, 1, 1),
            (3, 5, 7),
            (17, 67, 128),
            (130, 40, 300),
            (2, 66, 33),
        ] {
            let value = |seed: usize, i: usize| {
                bf16::from_f32(((i * 7919 + seed) % 513) as f32 / 256.0 - 1.0)
            };
            let a: Vec<bf16> = (0..m * k).map(|i| value(1, i)).collect();
            let b: Vec<bf16> = (0..n * k).map(|i| value(5, i)).collect();
            let mut out = vec![bf16::NAN; m * n];
            multiply(Sizes { m, n, k }, &a, &b, &mut out);
            for (index, value) in out.iter().enumerate() {
                let (row, column) = (index / n, index % n);
                let right: f64 = (0..k)
                    .map(|i| f64::from(a[row * k + i]) * f64::from(b[column * k + i]))
                    .sum();
                let error = (f64::from(*value) - right).abs();
                assert!(error <= 1e-4 + right.abs() / 256.0, "{m}x{n}x{k} [{index}]");
            }
        }
    }
}
