//! The library's product: matrixmultiply's sgemm, on as many threads as it chooses.

use crate::Sizes;

pub fn multiply(sizes: Sizes, a: &[f32], b: &[f32], out: &mut [f32]) {
    sizes.check(a, b, out);
    let Sizes { m, n, k } = sizes;
    // SAFETY: the lengths were checked above against m x k, n x k and m x n; the strides are of
    // dense rows, with b's swapped because it is passed transposed.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.as_ptr(),
            k as isize,
            1,
            b.as_ptr(),
            1,
            k as isize,
            0.0,
            out.as_mut_ptr(),
            n as isize,
            1,
        );
    }
}
