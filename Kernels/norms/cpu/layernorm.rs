//! LayerNorm.

use crate::columns::{Columns, ColumnsMut};
use crate::Element;
use host::{accumulate_rows, each_row, sum, sum2, vectorized};

/// `out = (x - mean) * rstd * weight + bias`
pub fn forward<T: Element>(
    x: &[T],
    weight: Columns<T>,
    bias: Columns<T>,
    out: &mut [T],
    columns: usize,
    epsilon: f32,
) {
    let (weight, bias) = (weight.widened(), bias.widened());
    each_row(out, columns, columns, |row, out, buffer| {
        let x = &x[row * columns..][..columns];
        forward_row(x, &weight, &bias, out, buffer, epsilon);
    });
}

vectorized! {
    fn forward_row<T: Element>(
        x: &[T],
        weight: &[f32],
        bias: &[f32],
        out: &mut [T],
        buffer: &mut [f32],
        epsilon: f32,
    ) {
        T::widen_all(x, buffer);
        let count = buffer.len() as f32;
        let mean = sum(buffer, |x| x) / count;
        let variance = sum(buffer, |x| (x - mean) * (x - mean)) / count;
        let rstd = 1.0 / (variance + epsilon).sqrt();
        for (x, (weight, bias)) in buffer.iter_mut().zip(weight.iter().zip(bias.iter())) {
            *x = (*x - mean) * rstd * weight + bias;
        }
        T::narrow_all(buffer, out);
    }
}

/// Inputs of the backward pass.
#[derive(Clone, Copy, Debug)]
pub struct Saved<'a, T> {
    pub x: &'a [T],
    pub weight: Columns<'a, T>,
    pub out_gradient: &'a [T],
    pub mean: &'a [f32],
    pub rstd: &'a [f32],
}

/// The gradients of x, of the weight and of the bias.
pub fn backward<T: Element>(
    saved: Saved<T>,
    x_gradient: &mut [T],
    weight_gradient: ColumnsMut<T>,
    bias_gradient: ColumnsMut<T>,
    columns: usize,
) {
    let weight = saved.weight.widened();
    let sums = accumulate_rows(x_gradient, columns, |row, dx, sums, buffers| {
        T::widen_all(&saved.x[row * columns..][..columns], &mut buffers[0]);
        T::widen_all(
            &saved.out_gradient[row * columns..][..columns],
            &mut buffers[1],
        );
        let statistics = (saved.mean[row], saved.rstd[row]);
        backward_row(statistics, &weight, dx, sums, buffers);
    });
    let [weight_sums, bias_sums] = sums;
    weight_gradient.store(&weight_sums);
    bias_gradient.store(&bias_sums);
}

vectorized! {
    /// With x and the gradient of the output in the buffers.
    fn backward_row<T: Element>(
        statistics: (f32, f32),
        weight: &[f32],
        dx: &mut [T],
        sums: &mut [Vec<f32>; 2],
        buffers: &mut [Vec<f32>; 2],
    ) {
        let ((mean, rstd), [x, gradient]) = (statistics, buffers);
        let [weight_sums, bias_sums] = sums;
        let count = x.len() as f32;
        for (x, (gradient, sum)) in x.iter_mut().zip(gradient.iter().zip(weight_sums)) {
            *x = (*x - mean) * rstd;
            *sum += gradient * *x;
        }
        for (gradient, (weight, sum)) in gradient.iter_mut().zip(weight.iter().zip(bias_sums)) {
            *sum += *gradient;
            *gradient *= weight;
        }
        let average = sum(gradient, |scaled| scaled) / count;
        let projection = sum2(x, gradient, |x, scaled| x * scaled) / count;
        for (x, scaled) in x.iter_mut().zip(gradient.iter()) {
            *x = rstd * (scaled - average - *x * projection);
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
        bias: Columns<T>,
        out: &mut [T],
        columns: usize,
        epsilon: f32,
    ) {
        for (x, out) in x.chunks(columns).zip(out.chunks_mut(columns)) {
            let average = mean(x.iter().map(|x| x.widen()));
            let variance = mean(x.iter().map(|x| (x.widen() - average).powi(2)));
            let rstd = 1.0 / (variance + epsilon).sqrt();
            for column in 0..columns {
                let normal = (x[column].widen() - average) * rstd;
                out[column] = T::narrow(normal * weight.get(column) + bias.get(column));
            }
        }
    }

    pub fn backward<T: Element>(
        saved: Saved<T>,
        x_gradient: &mut [T],
        weight_gradient: ColumnsMut<T>,
        bias_gradient: ColumnsMut<T>,
        columns: usize,
    ) {
        let (mut weight_sums, mut bias_sums) = (vec![0.0f64; columns], vec![0.0f64; columns]);
        for (row, dx) in x_gradient.chunks_mut(columns).enumerate() {
            let at = |column: usize| {
                let index = row * columns + column;
                let gradient = saved.out_gradient[index].widen();
                let normal = (saved.x[index].widen() - saved.mean[row]) * saved.rstd[row];
                (normal, gradient, gradient * saved.weight.get(column))
            };
            let average = mean((0..columns).map(|column| at(column).2));
            let projection = mean((0..columns).map(|column| at(column).0 * at(column).2));
            for column in 0..columns {
                let (normal, gradient, scaled) = at(column);
                weight_sums[column] += f64::from(gradient * normal);
                bias_sums[column] += f64::from(gradient);
                dx[column] = T::narrow(saved.rstd[row] * (scaled - average - normal * projection));
            }
        }
        weight_gradient.store(&narrowed(&weight_sums));
        bias_gradient.store(&narrowed(&bias_sums));
    }
}
