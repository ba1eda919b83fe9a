//! Cross-entropy of a row of logits against one target, and its gradient.

use crate::softmax::largest;
use crate::{sum, Real};

/// `ln(sum(exp(x)))`, without overflow.
pub fn log_sum_exp<R: Real>(logits: &[R]) -> R {
    let largest = largest(logits);
    largest + sum(logits.iter().map(|&logit| (logit - largest).exp())).ln()
}

/// The loss `lse - logits[target]`, and the lse.
pub fn forward<R: Real>(logits: &[R], target: usize) -> (R, R) {
    let lse = log_sum_exp(logits);
    (lse - logits[target], lse)
}

/// The gradient of the logits, from the saved lse and the loss's gradient.
pub fn backward<R: Real>(logits: &[R], target: usize, lse: R, gradient: R) -> Vec<R> {
    logits
        .iter()
        .enumerate()
        .map(|(column, &logit)| {
            let share = (logit - lse).exp();
            let wanted = if column == target {
                R::of(1.0)
            } else {
                R::of(0.0)
            };
            (share - wanted) * gradient
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, numeric, values};

    #[test]
    fn known_values() {
        let (loss, lse) = forward(&[0.0f64, 3f64.ln()], 1);
        assert_close(&[loss, lse], &[(4.0f64 / 3.0).ln(), 4f64.ln()], 1e-15);
        assert_eq!(forward(&[1e30f32], 0), (0.0, 1e30));
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let logits = values(1, 9);
        for target in [0, 4, 8] {
            let analytic = backward(&logits, target, log_sum_exp(&logits), 0.7);
            assert_close(
                &analytic,
                &numeric(&logits, |x| 0.7 * forward(x, target).0),
                1e-8,
            );
        }
    }
}
