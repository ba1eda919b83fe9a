//! RMSNorm.

use crate::columns::{Columns, ColumnsMut};
use crate::Element;
use host::{accumulate_rows, each_row, each_row2, sum, sum2, vectorized};

#[inline(always)]
fn rstd(x: &[f32], epsilon: f32) -> f32 {
    1.0 / (sum(x, |value| value * value) / x.len() as f32 + epsilon).sqrt()
}

#[inline(always)]
fn scale(x: &mut [f32], rstd: f32, weight: &[f32]) {
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = *x * rstd * weight;
    }
}

/// `out = x * rstd * weight`
pub fn forward<T: Element>(
    x: &[T],
    weight: Columns<T>,
    out: &mut [T],
    columns: usize,
    epsilon: f32,
) {
    let weight = weight.widened();
    each_row(out, columns, columns, |row, out, buffer| {
        let x = &x[row * columns..][..columns];
        forward_row(x, &weight, out, buffer, epsilon);
    });
}

vectorized! {
    fn forward_row<T: Element>(
        x: &[T],
        weight: &[f32],
        out: &mut [T],
        buffer: &mut [f32],
        epsilon: f32,
    ) {
        T::widen_all(x, buffer);
        let rstd = rstd(buffer, epsilon);
        scale(buffer, rstd, weight);
        T::narrow_all(buffer, out);
    }
}

/// In place: `residual += x`, then `x = residual * rstd * weight`.
pub fn fused_add<T: Element>(
    x: &mut [T],
    residual: &mut [T],
    weight: Columns<T>,
    columns: usize,
    epsilon: f32,
) {
    let weight = weight.widened();
    each_row2(
        (x, columns),
        (residual, columns),
        columns,
        |_, x, residual, buffer| fused_add_row(x, residual, &weight, buffer, epsilon),
    );
}

vectorized! {
    fn fused_add_row<T: Element>(
        x: &mut [T],
        residual: &mut [T],
        weight: &[f32],
        buffer: &mut [f32],
        epsilon: f32,
    ) {
        for (x, residual) in x.iter().zip(residual.iter_mut()) {
            *residual = T::narrow(x.widen() + residual.widen());
        }
        T::widen_all(residual, buffer);
        let rstd = rstd(buffer, epsilon);
        scale(buffer, rstd, weight);
        T::narrow_all(buffer, x);
    }
}

/// Inputs of the backward pass.
#[derive(Clone, Copy, Debug)]
pub struct Saved<'a, T> {
    pub x: &'a [T],
    pub weight: Columns<'a, T>,
    pub out_gradient: &'a [T],
    pub rstd: &'a [f32],
}

/// The gradients of x and of the weight.
pub fn backward<T: Element>(
    saved: Saved<T>,
    x_gradient: &mut [T],
    weight_gradient: ColumnsMut<T>,
    columns: usize,
) {
    let weight = saved.weight.widened();
    let [weight_sums] = accumulate_rows(
        x_gradient,
        columns,
        |row, dx, sums: &mut [Vec<f32>; 1], buffers| {
            T::widen_all(&saved.x[row * columns..][..columns], &mut buffers[0]);
            T::widen_all(
                &saved.out_gradient[row * columns..][..columns],
                &mut buffers[1],
            );
            backward_row(saved.rstd[row], &weight, dx, &mut sums[0], buffers);
        },
    );
    weight_gradient.store(&weight_sums);
}

vectorized! {
    /// With x and the gradient of the output in the buffers.
    fn backward_row<T: Element>(
        rstd: f32,
        weight: &[f32],
        dx: &mut [T],
        sums: &mut [f32],
        buffers: &mut [Vec<f32>; 2],
    ) {
        let [x, gradient] = buffers;
        for (x, (gradient, sum)) in x.iter_mut().zip(gradient.iter_mut().zip(sums)) {
            *x *= rstd;
            *sum += *gradient * *x;
        }
        for (gradient, weight) in gradient.iter_mut().zip(weight.iter()) {
            *gradient *= weight;
        }
        let projection = sum2(x, gradient, |x, scaled| x * scaled) / x.len() as f32;
        for (x, scaled) in x.iter_mut().zip(gradient.iter()) {
            *x = rstd * (scaled - *x * projection);
        }
        T::narrow_all(x, dx);
    }
}

/// One naive single-threaded loop per operation.
pub mod plain {
    use super::Saved;
    use crate::columns::{Columns, ColumnsMut};
    use crate::naive::{mean, narrowed};
    use crate::Element;

    pub fn forward<T: Element>(
        x: &[T],
        weight: Columns<T>,
        out: &mut [T],
        columns: usize,
        epsilon: f32,
    ) {
        for (x, out) in x.chunks(columns).zip(out.chunks_mut(columns)) {
            let rstd = rstd(x, epsilon);
            for column in 0..columns {
                out[column] = T::narrow(x[column].widen() * rstd * weight.get(column));
            }
        }
    }

    pub fn fused_add<T: Element>(
        x: &mut [T],
        residual: &mut [T],
        weight: Columns<T>,
        columns: usize,
        epsilon: f32,
    ) {
        for (x, residual) in x.chunks_mut(columns).zip(residual.chunks_mut(columns)) {
            for column in 0..columns {
                residual[column] = T::narrow(x[column].widen() + residual[column].widen());
            }
            let rstd = rstd(residual, epsilon);
            for column in 0..columns {
                x[column] = T::narrow(residual[column].widen() * rstd * weight.get(column));
            }
        }
    }

    pub fn backward<T: Element>(
        saved: Saved<T>,
        x_gradient: &mut [T],
        weight_gradient: ColumnsMut<T>,
        columns: usize,
    ) {
        let mut sums = vec![0.0f64; columns];
        for (row, dx) in x_gradient.chunks_mut(columns).enumerate() {
            let at = |column: usize| {
                let index = row * columns + column;
                let gradient = saved.out_gradient[index].widen();
                (
                    saved.x[index].widen() * saved.rstd[row],
                    gradient,
                    gradient * saved.weight.get(column),
                )
            };
            let projection = mean((0..columns).map(|column| at(column).0 * at(column).2));
            for column in 0..columns {
                let (normal, gradient, scaled) = at(column);
                sums[column] += f64::from(gradient * normal);
                dx[column] = T::narrow(saved.rstd[row] * (scaled - normal * projection));
            }
        }
        weight_gradient.store(&narrowed(&sums));
    }

    fn rstd<T: Element>(x: &[T], epsilon: f32) -> f32 {
        1.0 / (mean(x.iter().map(|x| x.widen() * x.widen())) + epsilon).sqrt()
    }
}
