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

#[inline(always)]
fn add_row_inline(sums: &mut [f32], factor: f32, row: &[f32]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += factor * value;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn product_with_avx(sums: &mut [f32], factors: &[f32], rows: &[f32]) {
    let width = sums.len();
    for (factor, row) in factors.iter().zip(rows.chunks_exact(width)) {
        add_row_inline(sums, *factor, row);
    }
}

/// Adds a row vector times a matrix: `sums[j] += factors[k] * rows[k][j]`, k upwards.
pub fn product(sums: &mut [f32], factors: &[f32], rows: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has what the function needs.
        return unsafe { product_with_avx(sums, factors, rows) };
    }
    for (factor, row) in factors.iter().zip(rows.chunks_exact(sums.len())) {
        add_row_inline(sums, *factor, row);
    }
}
