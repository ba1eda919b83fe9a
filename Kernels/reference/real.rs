//! The arithmetic that the references need, in f32 and f64.

use std::ops::{Add, Div, Mul, Neg, Sub};

pub trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
}

macro_rules! real {
    ($type:ty) => {
        impl Real for $type {
            fn of(value: f64) -> Self {
                value as $type
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn exp(self) -> Self {
                self.exp()
            }
            fn ln(self) -> Self {
                self.ln()
            }
            fn tanh(self) -> Self {
                self.tanh()
            }
            // Rounded once, like a good implementation in this precision.
            fn erf(self) -> Self {
                crate::erf::erf(f64::from(self)) as $type
            }
        }
    };
}

real!(f32);
real!(f64);

/// Terms added sequentially before their sum is added to the others.
const BLOCK: usize = 128;

/// A blocked sum, as in any parallel implementation: its error grows with the number of blocks, not
/// of terms.
pub fn sum<R: Real>(terms: impl Iterator<Item = R>) -> R {
    let (mut total, mut block, mut count) = (R::of(0.0), R::of(0.0), 0);
    for term in terms {
        block = block + term;
        count += 1;
        if count == BLOCK {
            total = total + block;
            (block, count) = (R::of(0.0), 0);
        }
    }
    total + block
}

pub fn mean<R: Real>(terms: impl ExactSizeIterator<Item = R>) -> R {
    let count = R::of(terms.len() as f64);
    sum(terms) / count
}

/// The f32 sum that is farthest from the true one among the orders that honest implementations use:
/// running, in blocks, and in interleaved partial sums as with parallel workers.
///
/// A sum that nearly cancels has no typical error, only lucky and unlucky orders; taking the
/// unluckiest keeps a tolerance based on few sums from depending on luck.
pub fn farthest_sum(terms: &[f32]) -> f32 {
    const WORKERS: usize = 128;
    let mut partials = [0.0f32; WORKERS];
    for (index, term) in terms.iter().enumerate() {
        partials[index % WORKERS] += term;
    }
    let exact: f64 = terms.iter().map(|&term| f64::from(term)).sum();
    let distance = |candidate: f32| (f64::from(candidate) - exact).abs();
    let orders = [
        terms.iter().fold(0.0, |total, term| total + term),
        terms.iter().rev().fold(0.0, |total, term| total + term),
        sum(terms.iter().copied()),
        partials.iter().fold(0.0, |total, partial| total + partial),
    ];
    orders
        .into_iter()
        .max_by(|a, b| distance(*a).total_cmp(&distance(*b)))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_sum_keeps_what_a_running_one_loses() {
        let terms = 1 << 24;
        let running = (0..terms + 1000).fold(0.0f32, |total, _| total + 1.0);
        assert_eq!(running, terms as f32);
        assert_eq!(
            sum((0..terms + 1024).map(|_| 1.0f32)),
            (terms + 1024) as f32
        );
    }

    #[test]
    fn the_farthest_sum_is_a_sum() {
        assert_eq!(farthest_sum(&[]), 0.0);
        assert_eq!(farthest_sum(&[1.0, 2.0, 4.0]), 7.0);
        // A running sum loses every 1 after the 2^24; from the other end it loses none.
        let mut terms = vec![1.0f32; 256];
        terms[0] = 16_777_216.0;
        assert_eq!(farthest_sum(&terms), 16_777_216.0);
    }

    #[test]
    fn empty_and_partial_blocks() {
        assert_eq!(sum(std::iter::empty::<f64>()), 0.0);
        assert_eq!(sum((0..=BLOCK).map(|term| term as f64)), 8256.0);
        assert_eq!(mean([1.0, 2.0, 6.0].into_iter()), 3.0);
    }
}
