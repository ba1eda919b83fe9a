//! Matrix products on the CPU in f32: our threaded one, and an established library's to beat.
//!
//! out[r, c] = sum over i of a[r, i] * b[c, i]: k is contiguous in both operands. Narrow operands
//! are widened first, which is part of the work; not so bf16 in [`amx`] and [`narrow`].

pub mod amx;
mod library;
pub mod narrow;
mod tile;
mod widen;

use half::bf16;

pub use library::multiply as multiply_library;
pub use tile::multiply;
pub use widen::{
    narrow_bf16, narrow_f16, widen_bf16, widen_blocks, widen_f16, widen_fp8, BlockFormat, Scales,
};

/// The sizes of one product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// Up to here b is read too few times to be worth packing.
const FEW_ROWS: usize = 32;

/// A product of bf16 operands as they are, on the matrix unit where there is one and enough rows for it.
///
/// # Panics
/// If [`narrow`] is not available, or sizes are wrong.
pub fn multiply_bf16(sizes: Sizes, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    match sizes.m > FEW_ROWS && amx::is_available() {
        true => amx::multiply(sizes, a, b, out),
        false => narrow::multiply(sizes, a, b, out),
    }
}

impl Sizes {
    fn check(self, a: &[f32], b: &[f32], out: &[f32]) {
        assert_eq!(a.len(), self.m * self.k, "a is not m x k");
        assert_eq!(b.len(), self.n * self.k, "b is not n x k");
        assert_eq!(out.len(), self.m * self.n, "out is not m x n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Product = fn(Sizes, &[f32], &[f32], &mut [f32]);

    #[test]
    fn both_products_agree_with_sums_in_f64() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 7), (17, 33, 128), (64, 40, 300)] {
            let sizes = Sizes { m, n, k };
            let value = |seed: usize, i: usize| ((i * 7919 + seed) % 513) as f32 / 256.0 - 1.0;
            let a: Vec<f32> = (0..m * k).map(|i| value(1, i)).collect();
            let b: Vec<f32> = (0..n * k).map(|i| value(5, i)).collect();
            let products: [Product; 2] = [multiply, multiply_library];
            for product in products {
                let mut out = vec![f32::NAN; m * n];
                product(sizes, &a, &b, &mut out);
                for (index, value) in out.iter().enumerate() {
                    let (row, column) = (index / n, index % n);
                    let right: f64 = (0..k)
                        .map(|i| f64::from(a[row * k + i]) * f64::from(b[column * k + i]))
                        .sum();
                    assert!(
                        (f64::from(*value) - right).abs() < 1e-4,
                        "{m}x{n}x{k} [{index}]"
                    );
                }
            }
        }
    }
}
