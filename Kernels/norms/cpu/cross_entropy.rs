//! Cross-entropy of rows of logits against one target each.

use crate::Element;
use host::{each_row, each_row2, exp, largest, sum};

/// `lse = ln(sum(exp(logits)))`, `loss = lse - logits[target]`
///
/// # Panics
/// If a target is not a column.
pub fn cross_entropy_forward<T: Element>(
    logits: &[T],
    targets: &[i64],
    loss: &mut [f32],
    lse: &mut [f32],
    columns: usize,
) {
    each_row2((loss, 1), (lse, 1), columns, |row, loss, lse, buffer| {
        let logits = &logits[row * columns..][..columns];
        T::widen_all(logits, buffer);
        let largest = largest(buffer);
        lse[0] = largest + sum(buffer, |logit| exp(logit - largest)).ln();
        loss[0] = lse[0] - logits[targets[row] as usize].widen();
    });
}

/// Both in one: the losses, and the gradient of their sum in place of the logits.
///
/// # Panics
/// If a target is not a column.
pub fn cross_entropy_forward_backward<T: Element>(
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
            T::widen_all(logits, buffer);
            let largest = largest(buffer);
            let sum = sum(buffer, |logit| exp(logit - largest));
            let target = targets[row] as usize;
            loss[0] = largest + sum.ln() - buffer[target];
            for logit in buffer.iter_mut() {
                *logit = exp(*logit - largest) / sum;
            }
            buffer[target] -= 1.0;
            T::narrow_all(buffer, logits);
        },
    );
}

/// `logits_gradient = (exp(logits - lse) - [column == target]) * loss_gradient`
///
/// # Panics
/// If a target is not a column.
pub fn cross_entropy_backward<T: Element>(
    logits: &[T],
    targets: &[i64],
    lse: &[f32],
    loss_gradient: &[f32],
    logits_gradient: &mut [T],
) {
    let columns = logits.len() / targets.len();
    each_row(logits_gradient, columns, columns, |row, out, buffer| {
        T::widen_all(&logits[row * columns..][..columns], buffer);
        let (lse, gradient) = (lse[row], loss_gradient[row]);
        let target = targets[row] as usize;
        let wanted = (exp(buffer[target] - lse) - 1.0) * gradient;
        for logit in buffer.iter_mut() {
            *logit = exp(*logit - lse) * gradient;
        }
        buffer[target] = wanted;
        T::narrow_all(buffer, out);
    });
}
