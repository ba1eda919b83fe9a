//! GELU (exact and tanh), SwiGLU and GEGLU, element by element, with their gradients.

use crate::Real;

/// A function with its derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `x * cdf(x)` with the normal distribution's cdf.
    Gelu,
    /// `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
}

const CUBIC: f64 = 0.044715;

fn sqrt_2_over_pi<R: Real>() -> R {
    R::of((2.0 / std::f64::consts::PI).sqrt())
}

fn sigmoid<R: Real>(x: R) -> R {
    R::of(1.0) / (R::of(1.0) + (-x).exp())
}

fn tanh_argument<R: Real>(x: R) -> R {
    sqrt_2_over_pi::<R>() * (x + R::of(CUBIC) * x * x * x)
}

fn normal_cdf<R: Real>(x: R) -> R {
    R::of(0.5) * (R::of(1.0) + (x * R::of(std::f64::consts::FRAC_1_SQRT_2)).erf())
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Gelu => "gelu",
            Unit::GeluTanh => "gelu_tanh",
            Unit::Silu => "silu",
        }
    }

    pub fn value<R: Real>(self, x: R) -> R {
        match self {
            Unit::Gelu => x * normal_cdf(x),
            Unit::GeluTanh => R::of(0.5) * x * (R::of(1.0) + tanh_argument(x).tanh()),
            Unit::Silu => x * sigmoid(x),
        }
    }

    pub fn derivative<R: Real>(self, x: R) -> R {
        let (half, one) = (R::of(0.5), R::of(1.0));
        match self {
            Unit::Gelu => {
                let density = R::of((2.0 * std::f64::consts::PI).sqrt().recip());
                normal_cdf(x) + x * density * (-half * x * x).exp()
            }
            Unit::GeluTanh => {
                let tanh = tanh_argument(x).tanh();
                let inner = sqrt_2_over_pi::<R>() * (one + R::of(3.0 * CUBIC) * x * x);
                half * (one + tanh) + half * x * (one - tanh * tanh) * inner
            }
            Unit::Silu => {
                let sigmoid = sigmoid(x);
                sigmoid * (one + x * (one - sigmoid))
            }
        }
    }
}

/// `unit(gate) * up`
pub fn gated<R: Real>(unit: Unit, gate: R, up: R) -> R {
    unit.value(gate) * up
}

/// The gradients of gate and up.
pub fn gated_backward<R: Real>(unit: Unit, gate: R, up: R, gradient: R) -> (R, R) {
    (
        gradient * up * unit.derivative(gate),
        gradient * unit.value(gate),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{assert_close, numeric};

    const UNITS: [Unit; 3] = [Unit::Gelu, Unit::GeluTanh, Unit::Silu];

    #[test]
    fn known_values() {
        let at_one = UNITS.map(|unit| unit.value(1.0f64));
        let right = [
            0.841_344_746_068_543,
            0.841_191_990_608_3,
            0.731_058_578_630_0,
        ];
        assert_close(&at_one, &right, 1e-12);
        for unit in UNITS {
            assert_eq!(unit.value(0.0f64), 0.0);
            assert!((unit.value(20.0f64) - 20.0).abs() < 1e-7);
            assert!(unit.value(-20.0f64).abs() < 1e-7);
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for unit in UNITS {
            for step in -40..=40 {
                let x = f64::from(step) / 8.0;
                let numeric_x = numeric(&[x], |x| unit.value(x[0]));
                assert_close(&[unit.derivative(x)], &numeric_x, 1e-9);
                let (gate, up) = gated_backward(unit, x, 0.7, 1.3);
                let loss = |at: &[f64]| 1.3 * gated(unit, at[0], at[1]);
                assert_close(&[gate, up], &numeric(&[x, 0.7], loss), 1e-8);
            }
        }
    }
}
