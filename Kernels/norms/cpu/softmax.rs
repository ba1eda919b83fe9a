//! Softmax over rows.

use crate::Element;
use host::{each_row, exp, largest, sum, sum2};

/// `out = exp(x - max) / sum(exp(x - max))`
pub fn softmax_forward<T: Element>(x: &[T], out: &mut [T], columns: usize) {
    each_row(out, columns, columns, |row, out, buffer| {
        T::widen_all(&x[row * columns..][..columns], buffer);
        let largest = largest(buffer);
        for x in buffer.iter_mut() {
            *x = exp(*x - largest);
        }
        let scale = 1.0 / sum(buffer, |value| value);
        for value in buffer.iter_mut() {
            *value *= scale;
        }
        T::narrow_all(buffer, out);
    });
}

/// `x_gradient = out * (out_gradient - sum(out * out_gradient))`
pub fn softmax_backward<T: Element>(
    out: &[T],
    out_gradient: &[T],
    x_gradient: &mut [T],
    columns: usize,
) {
    each_row(x_gradient, columns, 2 * columns, |row, dx, buffer| {
        let (share, gradient) = buffer.split_at_mut(columns);
        T::widen_all(&out[row * columns..][..columns], share);
        T::widen_all(&out_gradient[row * columns..][..columns], gradient);
        let projection = sum2(share, gradient, |share, gradient| share * gradient);
        for (share, gradient) in share.iter_mut().zip(gradient) {
            *share *= *gradient - projection;
        }
        T::narrow_all(share, dx);
    });
}
