//! The library's product: the sgemm of the crate `gemm`, on as many threads as ours.

use crate::Sizes;
use gemm_common::Parallelism;

pub fn multiply(sizes: Sizes, a: &[f32], b: &[f32], out: &mut [f32]) {
    sizes.check(a, b, out);
    let Sizes { m, n, k } = sizes;
    let (lines, columns) = (k as isize, n as isize);
    // SAFETY: the lengths were checked above against m x k, n x k and m x n; the strides, of columns and then of rows,
    // are of dense rows, with b's swapped because it is passed transposed.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            columns,
            false,
            a.as_ptr(),
            1,
            lines,
            b.as_ptr(),
            lines,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(host::threads()),
        );
    }
}
