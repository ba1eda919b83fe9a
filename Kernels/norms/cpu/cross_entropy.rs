//! Cross-entropy of rows of logits against one target each.

use crate::Element;
use host::{each_row, each_row2, exp, largest, sum, vectorized};

/// `lse = ln(sum(exp(logits)))`, `loss = lse - logits[target]`
///
/// # Panics
/// If a target is not a column.
pub fn forward<T: Element>(
    logits: &[T],
    targets: &[i64],
    loss: &mut [f32],
    lse: &mut [f32],
    columns: usize,
) {
    each_row2((loss, 1), (lse, 1), columns, |row, loss, lse, buffer| {
        let logits = &logits[row * columns..][..columns];
        let (largest, sum) = largest_and_sum(logits, buffer);
        lse[0] = largest + sum.ln();
        loss[0] = lse[0] - logits[targets[row] as usize].widen();
    });
}

vectorized! {
    /// The largest logit, and the sum of the shares e^(logit - largest), which the buffer gets. Shares
    /// and their sum are two loops, because only simple ones become vectors.
    fn largest_and_sum<T: Element>(logits: &[T], buffer: &mut [f32]) -> (f32, f32) {
        T::widen_all(logits, buffer);
        let largest = largest(buffer);
        for logit in buffer.iter_mut() {
            *logit = exp(*logit - largest);
        }
        (largest, sum(buffer, |share| share))
    }
}

/// Both in one: the losses, and the gradient of their sum in place of the logits.
///
/// # Panics
/// If a target is not a column.
pub fn forward_backward<T: Element>(
    logits: &mut [T],
    targets: &[i64],
    loss: &mut [f32],
    columns: usize,
) {
    each_row2(
        (logits, columns),
        (loss, 1),
        columns,
        |row, logits, loss, buffer| {
            let target = targets[row] as usize;
            loss[0] = forward_backward_row(target, logits, buffer);
        },
    );
}

vectorized! {
    /// The loss; the logits become their gradient.
    fn forward_backward_row<T: Element>(
        target: usize,
        logits: &mut [T],
        buffer: &mut [f32],
    ) -> f32 {
        T::widen_all(logits, buffer);
        let (largest, logit) = (largest(buffer), buffer[target]);
        for logit in buffer.iter_mut() {
            *logit = exp(*logit - largest);
        }
        let sum = sum(buffer, |share| share);
        let loss = largest + sum.ln() - logit;
        for share in buffer.iter_mut() {
            *share /= sum;
        }
        buffer[target] -= 1.0;
        T::narrow_all(buffer, logits);
        loss
    }
}

/// `logits_gradient = (exp(logits - lse) - [column == target]) * loss_gradient`
///
/// # Panics
/// If a target is not a column.
pub fn backward<T: Element>(
    logits: &[T],
    targets: &[i64],
    lse: &[f32],
    loss_gradient: &[f32],
    logits_gradient: &mut [T],
) {
    let columns = logits.len() / targets.len();
    each_row(logits_gradient, columns, columns, |row, out, buffer| {
        let logits = &logits[row * columns..][..columns];
        let scale = (lse[row], loss_gradient[row]);
        backward_row(targets[row] as usize, scale, logits, out, buffer);
    });
}

vectorized! {
    fn backward_row<T: Element>(
        target: usize,
        scale: (f32, f32),
        logits: &[T],
        out: &mut [T],
        buffer: &mut [f32],
    ) {
        let (lse, gradient) = scale;
        T::widen_all(logits, buffer);
        let wanted = (exp(buffer[target] - lse) - 1.0) * gradient;
        for logit in buffer.iter_mut() {
            *logit = exp(*logit - lse) * gradient;
        }
        buffer[target] = wanted;
        T::narrow_all(buffer, out);
    }
}

/// One naive single-threaded loop per operation.
pub mod plain {
    use crate::naive::{largest, sum};
    use crate::Element;

    pub fn forward<T: Element>(
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

    pub fn forward_backward<T: Element>(
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

    pub fn backward<T: Element>(
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
}
