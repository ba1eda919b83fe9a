//! Our product of bf16 operands where the CPU has AMX: tiles of 16 x 16 results, with 32 terms per instruction.
//!
//! A tile of a is 16 rows of 32 terms; one of b is 16 pairs of terms of 16 columns. Both are packed with zeros past the
//! edges: b once per product, 32 rows of a once per task. Four tiles of results at a time use every load twice.

use half::bf16;

use crate::Sizes;

/// Whether [`multiply`] can run here. The first call asks the kernel for the tile registers.
pub fn is_available() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return *x86::AVAILABLE;
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    false
}

/// out[r, c] = sum over i of a[r, i] * b[c, i], rounded once. The CPU takes subnormal terms and sums for zero.
///
/// # Panics
/// If it is not available, or sizes are wrong.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn multiply(sizes: Sizes, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    assert!(is_available(), "no AMX");
    let Sizes { m, n, k } = sizes;
    assert_eq!(a.len(), m * k, "a is not m x k");
    assert_eq!(b.len(), n * k, "b is not n x k");
    assert_eq!(out.len(), m * n, "out is not m x n");
    x86::multiply(sizes, a, b, out);
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn multiply(_: Sizes, _: &[bf16], _: &[bf16], _: &mut [bf16]) {
    panic!("no AMX");
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{
        __cpuid_count, __m256i, _mm256_mask_storeu_epi16, _mm512_cvtneps_pbh,
        _mm512_i32gather_epi32, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_storeu_si512,
    };
    use std::sync::LazyLock;

    use half::bf16;
    use rayon::prelude::*;

    use crate::Sizes;

    /// Rows of a tile, and columns of a tile of results.
    const SIDE: usize = 16;
    /// Terms of a tile.
    const DEPTH: usize = 32;
    /// Rows and columns of the results that are computed together.
    const BLOCK: usize = 2 * SIDE;
    /// Columns of a task.
    const COLUMNS: usize = 512;

    /// A tile of either operand.
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Tile([bf16; SIDE * DEPTH]);

    const ZEROS: Tile = Tile([bf16::ZERO; SIDE * DEPTH]);

    /// What `ldtilecfg` reads: eight tiles of 16 rows of 64 bytes.
    #[repr(C, align(64))]
    struct Shapes {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        rows: [u8; 16],
    }

    const SHAPES: Shapes = Shapes {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    pub static AVAILABLE: LazyLock<bool> = LazyLock::new(|| {
        const AMX_BF16: u32 = 1 << 22;
        const AMX_TILE: u32 = 1 << 24;
        let features = __cpuid_count(7, 0).edx;
        let both = features & AMX_BF16 != 0 && features & AMX_TILE != 0;
        let rounds = is_x86_feature_detected!("avx512bf16")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        both && rounds && tiles_are_permitted()
    });

    /// Linux keeps the tile registers' contents only for processes that ask for it.
    fn tiles_are_permitted() -> bool {
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const TILE_DATA: libc::c_long = 18;
        // SAFETY: takes two numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
    }

    /// The result, of which each task writes its own rectangle.
    struct Shared(*mut bf16);

    // SAFETY: tasks write disjoint elements.
    unsafe impl Sync for Shared {}

    pub fn multiply(Sizes { m, n, k }: Sizes, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
        let steps = k.div_ceil(DEPTH);
        if steps == 0 {
            return out.fill(bf16::ZERO);
        }
        // Pairs of tiles, so that a block never asks for one that is not there.
        let mut packed = vec![ZEROS; n.div_ceil(BLOCK) * 2 * steps];
        let columns = packed.par_chunks_mut(steps).enumerate();
        columns.for_each(|(tile, packed)| pack_columns(b, k, tile * SIDE, packed));
        let shared = Shared(out.as_mut_ptr());
        let (down, across) = (m.div_ceil(BLOCK), n.div_ceil(COLUMNS));
        (0..down * across).into_par_iter().for_each_init(
            || vec![ZEROS; 2 * steps],
            |rows, task| {
                let shared = &shared;
                let (row, first) = (task / across * BLOCK, task % across * COLUMNS);
                let (above, below) = rows.split_at_mut(steps);
                pack_rows(a, k, row, above);
                pack_rows(a, k, row + SIDE, below);
                // SAFETY: the CPU has the instructions; nothing else in this thread uses tiles before their release.
                unsafe { asm!("ldtilecfg [{}]", in(reg) &SHAPES, options(nostack)) };
                for column in (first..n.min(first + COLUMNS)).step_by(BLOCK) {
                    let at = column / SIDE * steps;
                    let (left, right) = packed[at..at + 2 * steps].split_at(steps);
                    let mut sums = Sums([0.0; BLOCK * BLOCK]);
                    // SAFETY: tiles have their shapes; each of the four operands has `steps` of them.
                    unsafe { block([above, below], [left, right], steps, &mut sums) };
                    for (line, sums) in sums.0.chunks_exact(BLOCK).enumerate().take(m - row.min(m))
                    {
                        for (half, sums) in sums.chunks_exact(SIDE).enumerate() {
                            let start = column + half * SIDE;
                            let width = n.saturating_sub(start).min(SIDE);
                            let place = (row + line) * n + start;
                            // SAFETY: the CPU has the instructions; these are elements of the task's own rectangle.
                            unsafe { store(sums, shared.0.wrapping_add(place), width) };
                        }
                    }
                }
                // SAFETY: ends what `ldtilecfg` began.
                unsafe { asm!("tilerelease", options(nostack, nomem)) };
            },
        );
    }

    #[repr(align(64))]
    struct Sums([f32; BLOCK * BLOCK]);

    /// Sixteen rows from `first` on, as tiles of a; what is past an edge is zero.
    fn pack_rows(a: &[bf16], k: usize, first: usize, tiles: &mut [Tile]) {
        let rows = a.len() / k;
        for (step, tile) in tiles.iter_mut().enumerate() {
            let terms = (k - step * DEPTH).min(DEPTH);
            for (i, line) in tile.0.chunks_exact_mut(DEPTH).enumerate() {
                match first + i < rows {
                    true => {
                        let from = &a[(first + i) * k + step * DEPTH..][..terms];
                        line[..terms].copy_from_slice(from);
                        line[terms..].fill(bf16::ZERO);
                    }
                    false => line.fill(bf16::ZERO),
                }
            }
        }
    }

    /// Sixteen columns from `first` on, as tiles of b, which are zeros so far.
    fn pack_columns(b: &[bf16], k: usize, first: usize, tiles: &mut [Tile]) {
        let columns = b.len() / k;
        let last = columns.min(first + SIDE);
        // The CPU gathers at 32-bit offsets.
        let whole = last == first + SIDE && SIDE * k <= i32::MAX as usize;
        for (step, tile) in tiles.iter_mut().enumerate() {
            let start = step * DEPTH;
            if whole && start + DEPTH <= k {
                // SAFETY: the CPU has the instructions; 16 columns have 32 terms from here on.
                unsafe { gather(&b[first * k + start..], k, tile) };
                continue;
            }
            for column in first..last {
                let terms =
                    &b[column * k + start..(column * k + start + DEPTH).min((column + 1) * k)];
                for (pair, terms) in terms.chunks(2).enumerate() {
                    let place = pair * DEPTH + 2 * (column - first);
                    tile.0[place..place + terms.len()].copy_from_slice(terms);
                }
            }
        }
    }

    /// A whole tile of b: pairs of terms, of all sixteen columns each.
    ///
    /// # Safety
    /// The CPU has the instructions; `b` has 32 terms at the start of each of 16 lines of k, whose offsets fit an i32.
    #[target_feature(enable = "avx512f")]
    unsafe fn gather(b: &[bf16], k: usize, tile: &mut Tile) {
        let lines: [i32; SIDE] = std::array::from_fn(|line| (line * k) as i32);
        // SAFETY: the caller's promise; a tile has sixteen lines of 64 bytes.
        unsafe {
            let offsets = _mm512_loadu_si512(lines.as_ptr().cast());
            for (pair, line) in tile.0.chunks_exact_mut(DEPTH).enumerate() {
                let from = b.as_ptr().add(2 * pair).cast();
                let pairs = _mm512_i32gather_epi32::<{ size_of::<bf16>() as i32 }>(offsets, from);
                _mm512_storeu_si512(line.as_mut_ptr().cast(), pairs);
            }
        }
    }

    /// The 32 x 32 sums of two tiles of rows with two of columns, over all steps.
    ///
    /// # Safety
    /// The tile registers have `SHAPES`; every operand has `steps` tiles, at least one.
    unsafe fn block(rows: [&[Tile]; 2], columns: [&[Tile]; 2], steps: usize, sums: &mut Sums) {
        debug_assert!(rows
            .iter()
            .chain(&columns)
            .all(|tiles| tiles.len() == steps));
        let out = sums.0.as_mut_ptr();
        // SAFETY: the caller's promise; results go to four quarters of `sums`, in lines of 128 bytes.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "tileloadd tmm4, [{a0} + {line}]",
                "tileloadd tmm6, [{b0} + {line}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b1} + {line}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a1} + {line}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a0}, 1024",
                "add {a1}, 1024",
                "add {b0}, 1024",
                "add {b1}, 1024",
                "dec {steps}",
                "jnz 2b",
                "add {line}, {line}",
                "tilestored [{out} + {line}], tmm0",
                "tilestored [{out} + {line} + 64], tmm1",
                "tilestored [{out} + {line} + 2048], tmm2",
                "tilestored [{out} + {line} + 2112], tmm3",
                a0 = inout(reg) rows[0].as_ptr() => _,
                a1 = inout(reg) rows[1].as_ptr() => _,
                b0 = inout(reg) columns[0].as_ptr() => _,
                b1 = inout(reg) columns[1].as_ptr() => _,
                steps = inout(reg) steps => _,
                line = inout(reg) 64usize => _,
                out = in(reg) out,
                options(nostack),
            );
        }
    }

    /// Rounds up to 16 sums to where they belong.
    ///
    /// # Safety
    /// The CPU has the instructions, and `width` elements from `to` on are the caller's to write.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn store(sums: &[f32], to: *mut bf16, width: usize) {
        assert_eq!(sums.len(), SIDE);
        let mask = ((1u32 << width) - 1) as u16;
        // SAFETY: sixteen sums are read; the mask leaves out what is past the caller's elements.
        unsafe {
            let rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(sums.as_ptr()));
            let rounded: __m256i = std::mem::transmute(rounded);
            _mm256_mask_storeu_epi16(to.cast(), mask, rounded);
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
            (33, 1100, 95),
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

    #[test]
    fn what_is_past_an_edge_is_neither_read_nor_written() {
        if !is_available() {
            return;
        }
        // Rows, columns and terms end inside of tiles; a NaN that leaked in would reach every sum.
        let (m, n, k) = (2, 3, 33);
        let (mut a, mut b) = (vec![bf16::NAN; 64 * k], vec![bf16::NAN; 64 * k]);
        a[..m * k].fill(bf16::ONE);
        b[..n * k].fill(bf16::ONE);
        let mut out = [bf16::NEG_ONE; 64];
        multiply(
            Sizes { m, n, k },
            &a[..m * k],
            &b[..n * k],
            &mut out[..m * n],
        );
        assert!(out[..m * n].iter().all(|sum| sum.to_f32() == k as f32));
        assert!(out[m * n..].iter().all(|other| *other == bf16::NEG_ONE));
    }
}
