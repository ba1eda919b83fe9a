//! RMSNorm and its gradients, and the fused residual addition.

use crate::{mean, sum, Real};

/// `1 / sqrt(mean(x^2) + epsilon)`
pub fn rstd<R: Real>(x: &[R], epsilon: R) -> R {
    R::of(1.0) / (mean(x.iter().map(|&value| value * value)) + epsilon).sqrt()
}

/// `x * rstd(x) * weight`
pub fn forward<R: Real>(x: &[R], weight: &[R], epsilon: R) -> Vec<R> {
    let rstd = rstd(x, epsilon);
    x.iter()
        .zip(weight)
        .map(|(&x, &weight)| x * rstd * weight)
        .collect()
}

/// The new residual `x + residual`, then its norm. `store` rounds a residual to its type: the norm is
/// that of the stored value.
pub fn fused_add<R: Real>(
    x: &[R],
    residual: &[R],
    weight: &[R],
    epsilon: R,
    store: impl Fn(R) -> R,
) -> (Vec<R>, Vec<R>) {
    let residual: Vec<R> = x
        .iter()
        .zip(residual)
        .map(|(&x, &residual)| store(x + residual))
        .collect();
    (forward(&residual, weight, epsilon), residual)
}

/// The gradient of x, from the gradient of the output and the saved `rstd`.
pub fn backward<R: Real>(x: &[R], weight: &[R], gradient: &[R], rstd: R) -> Vec<R> {
    let columns = || {
        x.iter()
            .zip(weight)
            .zip(gradient)
            .map(|((&x, &w), &g)| (x * rstd, w * g))
    };
    let projection = mean_of_products(columns(), x.len());
    columns()
        .map(|(normal, scaled)| rstd * (scaled - normal * projection))
        .collect()
}

/// One row's contribution to the weight gradient of a column.
pub fn weight_gradient_term<R: Real>(x: R, gradient: R, rstd: R) -> R {
    gradient * (x * rstd)
}

fn mean_of_products<R: Real>(pairs: impl Iterator<Item = (R, R)>, count: usize) -> R {
    sum(pairs.map(|(a, b)| a * b)) / R::of(count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, numeric, values};

    const EPSILON: f64 = 1e-6;

    #[test]
    fn known_values() {
        // The root mean square of (3, 4) is 5 / sqrt(2).
        let out = forward(&[3.0, 4.0], &[1.0, 2.0], 0.0);
        assert_close(
            &out,
            &[3.0 * 2f64.sqrt() / 5.0, 8.0 * 2f64.sqrt() / 5.0],
            1e-15,
        );
        assert_eq!(forward(&[0.0f32], &[1.0], 1e-6), [0.0]);
    }

    #[test]
    fn fused_add_norms_what_it_stores() {
        let (out, residual) =
            fused_add(&[1.25, 2.0], &[1.0, 2.0], &[1.0, 1.0], 0.0, |value: f64| {
                value.floor()
            });
        assert_eq!(residual, [2.0, 4.0]);
        assert_eq!(out, forward(&[2.0, 4.0], &[1.0, 1.0], 0.0));
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (x, weight, gradient) = (values(1, 7), values(2, 7), values(3, 7));
        let loss = |x: &[f64], weight: &[f64]| {
            forward(x, weight, EPSILON)
                .iter()
                .zip(&gradient)
                .map(|(o, g)| o * g)
                .sum::<f64>()
        };
        let rstd = rstd(&x, EPSILON);
        assert_close(
            &backward(&x, &weight, &gradient, rstd),
            &numeric(&x, |x| loss(x, &weight)),
            1e-8,
        );
        let weights: Vec<f64> = (0..7)
            .map(|column| weight_gradient_term(x[column], gradient[column], rstd))
            .collect();
        assert_close(&weights, &numeric(&weight, |weight| loss(&x, weight)), 1e-8);
    }
}
