//! Softmax over a row and its gradient.

use crate::{sum, Real};

pub fn largest<R: Real>(x: &[R]) -> R {
    x.iter()
        .copied()
        .fold(x[0], |largest, x| if x > largest { x } else { largest })
}

/// `exp(x - max) / sum(exp(x - max))`
pub fn forward<R: Real>(x: &[R]) -> Vec<R> {
    let largest = largest(x);
    let exponentials: Vec<R> = x.iter().map(|&x| (x - largest).exp()).collect();
    let scale = R::of(1.0) / sum(exponentials.iter().copied());
    exponentials
        .into_iter()
        .map(|value| value * scale)
        .collect()
}

/// The gradient of x, from the output of the forward pass and its gradient. `store` rounds a product of
/// the two to their type, in which it may be computed.
pub fn backward<R: Real>(out: &[R], gradient: &[R], store: impl Fn(R) -> R) -> Vec<R> {
    let projection = sum(out
        .iter()
        .zip(gradient)
        .map(|(&out, &gradient)| store(out * gradient)));
    out.iter()
        .zip(gradient)
        .map(|(&out, &gradient)| out * (gradient - projection))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, numeric, values};

    #[test]
    fn known_values() {
        assert_close(&forward(&[0.0, 3f64.ln()]), &[0.25, 0.75], 1e-15);
        assert_eq!(forward(&[1e30f32]), [1.0]);
        assert_eq!(forward(&[-1e30f32, 1e30]), [0.0, 1.0]);
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (x, gradient) = (values(1, 9), values(2, 9));
        let loss = |x: &[f64]| {
            forward(x)
                .iter()
                .zip(&gradient)
                .map(|(o, g)| o * g)
                .sum::<f64>()
        };
        let exact = backward(&forward(&x), &gradient, |product| product);
        assert_close(&exact, &numeric(&x, loss), 1e-8);
    }

    #[test]
    fn products_are_rounded_before_they_are_summed() {
        let gradient = backward(&[0.5, 0.5], &[1.0, 3.0], f64::floor);
        assert_eq!(gradient, [0.0, 1.0]);
    }
}
