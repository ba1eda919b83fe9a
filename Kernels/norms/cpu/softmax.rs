//! Softmax over rows.

use crate::Element;
use host::{each_row, exp, largest, sum, sum2, vectorized};

/// `out = exp(x - max) / sum(exp(x - max))`
pub fn forward<T: Element>(x: &[T], out: &mut [T], columns: usize) {
    each_row(out, columns, columns, |row, out, buffer| {
        forward_row(&x[row * columns..][..columns], out, buffer);
    });
}

vectorized! {
    fn forward_row<T: Element>(x: &[T], out: &mut [T], buffer: &mut [f32]) {
        T::widen_all(x, buffer);
        let largest = largest(buffer);
        for x in buffer.iter_mut() {
            *x = exp(*x - largest);
        }
        let scale = 1.0 / sum(buffer, |value| value);
        for value in buffer.iter_mut() {
            *value *= scale;
        }
        T::narrow_all(buffer, out);
    }
}

/// `x_gradient = out * (out_gradient - sum(out * out_gradient))`
pub fn backward<T: Element>(out: &[T], out_gradient: &[T], x_gradient: &mut [T], columns: usize) {
    each_row(x_gradient, columns, 2 * columns, |row, dx, buffer| {
        let [out, gradient] = [out, out_gradient].map(|all| &all[row * columns..][..columns]);
        backward_row(out, gradient, dx, buffer);
    });
}

vectorized! {
    fn backward_row<T: Element>(
        out: &[T],
        out_gradient: &[T],
        dx: &mut [T],
        buffer: &mut [f32],
    ) {
        let (share, gradient) = buffer.split_at_mut(out.len());
        T::widen_all(out, share);
        T::widen_all(out_gradient, gradient);
        let projection = sum2(share, gradient, |share, gradient| share * gradient);
        for (share, gradient) in share.iter_mut().zip(gradient) {
            *share *= *gradient - projection;
        }
        T::narrow_all(share, dx);
    }
}

/// One naive single-threaded loop per operation.
pub mod plain {
    use crate::naive::{largest, sum};
    use crate::Element;

    pub fn forward<T: Element>(x: &[T], out: &mut [T], columns: usize) {
        for (x, out) in x.chunks(columns).zip(out.chunks_mut(columns)) {
            let largest = largest(x);
            let scale = 1.0 / sum(x.iter().map(|x| (x.widen() - largest).exp()));
            for column in 0..columns {
                out[column] = T::narrow((x[column].widen() - largest).exp() * scale);
            }
        }
    }

    pub fn backward<T: Element>(
        out: &[T],
        out_gradient: &[T],
        x_gradient: &mut [T],
        columns: usize,
    ) {
        for (row, dx) in x_gradient.chunks_mut(columns).enumerate() {
            let at = |column: usize| {
                let index = row * columns + column;
                (out[index].widen(), out_gradient[index].widen())
            };
            let projection = sum((0..columns).map(|column| at(column).0 * at(column).1));
            for (column, dx) in dx.iter_mut().enumerate() {
                let (share, gradient) = at(column);
                *dx = T::narrow(share * (gradient - projection));
            }
        }
    }
}
