//! One naive single-threaded loop per operation: the baseline for the others. Sums are in f64,
//! because a plain f32 running sum over a long row would fail the gate.

use crate::columns::{Columns, ColumnsMut};
use crate::{Element, LayerNormSaved, RmsNormSaved};

pub fn rmsnorm_forward<T: Element>(
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

pub fn fused_add_rmsnorm<T: Element>(
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

pub fn rmsnorm_backward<T: Element>(
    saved: RmsNormSaved<T>,
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

pub fn layernorm_forward<T: Element>(
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

pub fn layernorm_backward<T: Element>(
    saved: LayerNormSaved<T>,
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

pub fn softmax_forward<T: Element>(x: &[T], out: &mut [T], columns: usize) {
    for (x, out) in x.chunks(columns).zip(out.chunks_mut(columns)) {
        let largest = largest(x);
        let scale = 1.0 / sum(x.iter().map(|x| (x.widen() - largest).exp()));
        for column in 0..columns {
            out[column] = T::narrow((x[column].widen() - largest).exp() * scale);
        }
    }
}

pub fn softmax_backward<T: Element>(
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

pub fn cross_entropy_forward<T: Element>(
    logits: &[T],
    targets: &[i64],
    loss: &mut [f32],
    lse: &mut [f32],
    columns: usize,
) {
    for (row, logits) in logits.chunks(columns).enumerate() {
        let largest = largest(logits);
        lse[row] = largest + sum(logits.iter().map(|x| (x.widen() - largest).exp())).ln();
        loss[row] = lse[row] - logits[targets[row] as usize].widen();
    }
}

pub fn cross_entropy_backward<T: Element>(
    logits: &[T],
    targets: &[i64],
    lse: &[f32],
    loss_gradient: &[f32],
    logits_gradient: &mut [T],
) {
    let columns = logits.len() / targets.len();
    for (row, dx) in logits_gradient.chunks_mut(columns).enumerate() {
        for (column, dx) in dx.iter_mut().enumerate() {
            let share = (logits[row * columns + column].widen() - lse[row]).exp();
            let wanted = if column as i64 == targets[row] {
                1.0
            } else {
                0.0
            };
            *dx = T::narrow((share - wanted) * loss_gradient[row]);
        }
    }
}

pub fn cross_entropy_forward_backward<T: Element>(
    logits: &mut [T],
    targets: &[i64],
    loss: &mut [f32],
    columns: usize,
) {
    for (row, logits) in logits.chunks_mut(columns).enumerate() {
        let largest = largest(logits);
        let lse = largest + sum(logits.iter().map(|x| (x.widen() - largest).exp())).ln();
        let target = targets[row] as usize;
        loss[row] = lse - logits[target].widen();
        for (column, logit) in logits.iter_mut().enumerate() {
            let wanted = if column == target { 1.0 } else { 0.0 };
            *logit = T::narrow((logit.widen() - lse).exp() - wanted);
        }
    }
}

fn rstd<T: Element>(x: &[T], epsilon: f32) -> f32 {
    1.0 / (mean(x.iter().map(|x| x.widen() * x.widen())) + epsilon).sqrt()
}

fn sum(terms: impl Iterator<Item = f32>) -> f32 {
    terms.map(f64::from).sum::<f64>() as f32
}

fn mean(terms: impl ExactSizeIterator<Item = f32>) -> f32 {
    let count = terms.len() as f32;
    sum(terms) / count
}

fn largest<T: Element>(x: &[T]) -> f32 {
    x.iter()
        .map(|x| x.widen())
        .fold(f32::NEG_INFINITY, f32::max)
}

fn narrowed(sums: &[f64]) -> Vec<f32> {
    sums.iter().map(|&sum| sum as f32).collect()
}
