//! LayerNorm and its gradients.

use crate::{mean, sum, Real};

/// Mean and `1 / sqrt(variance + epsilon)` of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics<R> {
    pub mean: R,
    pub rstd: R,
}

pub fn statistics<R: Real>(x: &[R], epsilon: R) -> Statistics<R> {
    let mean_x = mean(x.iter().copied());
    let variance = mean(x.iter().map(|&x| (x - mean_x) * (x - mean_x)));
    Statistics {
        mean: mean_x,
        rstd: R::of(1.0) / (variance + epsilon).sqrt(),
    }
}

/// `(x - mean) * rstd * weight + bias`
pub fn forward<R: Real>(x: &[R], weight: &[R], bias: &[R], epsilon: R) -> Vec<R> {
    let Statistics { mean, rstd } = statistics(x, epsilon);
    x.iter()
        .zip(weight.iter().zip(bias))
        .map(|(&x, (&weight, &bias))| (x - mean) * rstd * weight + bias)
        .collect()
}

/// The gradient of x, from the gradient of the output and the saved statistics.
pub fn backward<R: Real>(x: &[R], weight: &[R], gradient: &[R], saved: Statistics<R>) -> Vec<R> {
    let columns = || {
        x.iter()
            .zip(weight.iter().zip(gradient))
            .map(|(&x, (&weight, &gradient))| ((x - saved.mean) * saved.rstd, weight * gradient))
    };
    let count = R::of(x.len() as f64);
    let average = sum(columns().map(|(_, scaled)| scaled)) / count;
    let projection = sum(columns().map(|(normal, scaled)| normal * scaled)) / count;
    columns()
        .map(|(normal, scaled)| saved.rstd * (scaled - average - normal * projection))
        .collect()
}

/// One row's contribution to the weight gradient of a column. To the bias gradient it contributes
/// the output gradient itself.
pub fn weight_gradient_term<R: Real>(x: R, gradient: R, saved: Statistics<R>) -> R {
    gradient * ((x - saved.mean) * saved.rstd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, numeric, values};

    const EPSILON: f64 = 1e-5;

    #[test]
    fn known_values() {
        let out = forward(&[1.0, 3.0], &[1.0, 2.0], &[0.0, 1.0], 0.0);
        assert_close(&out, &[-1.0, 3.0], 1e-15);
        assert_eq!(forward(&[5.0f32], &[2.0], &[3.0], 1e-5), [3.0]);
    }

    #[test]
    fn a_large_mean_does_not_hurt_the_variance() {
        let x: Vec<f32> = (0..64).map(|column| 4096.0 + (column % 2) as f32).collect();
        let statistics = statistics(&x, 0.0);
        assert_eq!((statistics.mean, statistics.rstd), (4096.5, 2.0));
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (x, weight, bias, gradient) = (values(1, 6), values(2, 6), values(3, 6), values(4, 6));
        let loss = |x: &[f64], weight: &[f64], bias: &[f64]| {
            forward(x, weight, bias, EPSILON)
                .iter()
                .zip(&gradient)
                .map(|(o, g)| o * g)
                .sum::<f64>()
        };
        let saved = statistics(&x, EPSILON);
        assert_close(
            &backward(&x, &weight, &gradient, saved),
            &numeric(&x, |x| loss(x, &weight, &bias)),
            1e-8,
        );
        let weights: Vec<f64> = (0..6)
            .map(|column| weight_gradient_term(x[column], gradient[column], saved))
            .collect();
        assert_close(
            &weights,
            &numeric(&weight, |weight| loss(&x, weight, &bias)),
            1e-8,
        );
        assert_close(
            &gradient,
            &numeric(&bias, |bias| loss(&x, &weight, bias)),
            1e-8,
        );
    }
}
