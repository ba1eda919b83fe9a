//! The activation functions and their derivatives, in a form that vectorises.

use std::marker::PhantomData;

use host::exp;

/// A function with its derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Gelu,
    GeluTanh,
    Silu,
}

impl Unit {
    /// By the name that workloads use.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gelu" => Unit::Gelu,
            "gelu_tanh" => Unit::GeluTanh,
            "silu" => Unit::Silu,
            _ => return None,
        })
    }

    /// Value and derivative as a textbook has them.
    pub(crate) fn plain(self, x: f32) -> (f32, f32) {
        match self {
            // std has no error function.
            Unit::Gelu => Gelu::both(x),
            Unit::GeluTanh => {
                let root = (2.0 / std::f32::consts::PI).sqrt();
                let tanh = (root * (x + 0.044715 * x * x * x)).tanh();
                let inner = root * (1.0 + 3.0 * 0.044715 * x * x);
                let slope = 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * inner;
                (0.5 * x * (1.0 + tanh), slope)
            }
            Unit::Silu => {
                let share = 1.0 / (1.0 + (-x).exp());
                (x * share, share * (1.0 + x * (1.0 - share)))
            }
        }
    }
}

/// Runs `$body` with `$curve` as the unit's type.
macro_rules! with_curve {
    ($unit:expr, $curve:ident => $body:expr) => {
        match $unit {
            $crate::Unit::Gelu => {
                type $curve = $crate::units::Gelu;
                $body
            }
            $crate::Unit::GeluTanh => {
                type $curve = $crate::units::GeluTanh;
                $body
            }
            $crate::Unit::Silu => {
                type $curve = $crate::units::Silu;
                $body
            }
        }
    };
}

pub(crate) use with_curve;

/// Value and derivative of a unit.
pub(crate) trait Curve {
    fn value(x: f32) -> f32;
    fn both(x: f32) -> (f32, f32);
}

/// A function of two values.
pub(crate) trait Pair {
    fn of(a: f32, b: f32) -> f32;
}

/// The derivative times a gradient.
pub(crate) struct Slope<C>(PhantomData<C>);

impl<C: Curve> Pair for Slope<C> {
    #[inline(always)]
    fn of(x: f32, gradient: f32) -> f32 {
        C::both(x).1 * gradient
    }
}

/// The value times another.
pub(crate) struct Gated<C>(PhantomData<C>);

impl<C: Curve> Pair for Gated<C> {
    #[inline(always)]
    fn of(gate: f32, up: f32) -> f32 {
        C::value(gate) * up
    }
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    // Beyond this the result is 0 to within f32.
    const FAR: f32 = 87.0;
    let negated = -x;
    1.0 / (1.0 + exp(if negated > FAR { FAR } else { negated }))
}

pub(crate) struct Silu;

impl Curve for Silu {
    #[inline(always)]
    fn value(x: f32) -> f32 {
        x * sigmoid(x)
    }
    #[inline(always)]
    fn both(x: f32) -> (f32, f32) {
        let share = sigmoid(x);
        (x * share, share * (1.0 + x * (1.0 - share)))
    }
}

pub(crate) struct GeluTanh;

impl GeluTanh {
    const TWICE_ROOT: f32 = 1.595_769;
    const CUBIC: f32 = 0.044_715;

    /// 0.5 * (1 + tanh(z)) is sigmoid(2 z).
    #[inline(always)]
    fn share(x: f32) -> f32 {
        sigmoid(Self::TWICE_ROOT * x * (1.0 + Self::CUBIC * x * x))
    }
}

impl Curve for GeluTanh {
    #[inline(always)]
    fn value(x: f32) -> f32 {
        x * Self::share(x)
    }
    #[inline(always)]
    fn both(x: f32) -> (f32, f32) {
        let share = Self::share(x);
        let inner = Self::TWICE_ROOT * (1.0 + 3.0 * Self::CUBIC * x * x);
        (x * share, share + x * share * (1.0 - share) * inner)
    }
}

pub(crate) struct Gelu;

impl Gelu {
    /// The normal distribution's CDF and density at x. The tail is Abramowitz and Stegun's 7.1.26,
    /// whose absolute error is below 1e-7.
    #[inline(always)]
    fn distribution(x: f32) -> (f32, f32) {
        const ROOT_TWO_PI: f32 = 0.398_942_3;
        let bell = exp(-0.5 * x * x);
        let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * x.abs());
        let mut sum = 1.061_405_4f32;
        for coefficient in [-1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
            sum = sum * t + coefficient;
        }
        let tail = 0.5 * sum * t * bell;
        (if x < 0.0 { tail } else { 1.0 - tail }, ROOT_TWO_PI * bell)
    }
}

impl Curve for Gelu {
    #[inline(always)]
    fn value(x: f32) -> f32 {
        x * Self::distribution(x).0
    }
    #[inline(always)]
    fn both(x: f32) -> (f32, f32) {
        let (share, density) = Self::distribution(x);
        (x * share, share + x * density)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slopes agree with central differences of the values, and both ends with their limits.
    fn check<C: Curve>() {
        for step in -80..=80 {
            let x = step as f32 / 10.0;
            assert_eq!(C::both(x).0, C::value(x));
            let near = 1.0 / 64.0;
            let difference = (C::value(x + near) - C::value(x - near)) / (2.0 * near);
            assert!((C::both(x).1 - difference).abs() < 2e-4, "at {x}");
        }
        assert_eq!(C::value(0.0), 0.0);
        assert_eq!(C::value(100.0), 100.0);
        assert!(C::value(-100.0).abs() < 1e-30);
    }

    #[test]
    fn slopes_and_ends() {
        check::<Silu>();
        check::<GeluTanh>();
        check::<Gelu>();
    }

    #[test]
    fn known_values() {
        assert!((Gelu::value(1.0) - 0.841_344_7).abs() < 2e-7);
        assert!((GeluTanh::value(1.0) - 0.841_192).abs() < 2e-7);
        assert!((Silu::value(1.0) - 0.731_058_6).abs() < 2e-7);
    }
}
