//! RAII device memory, and the outcome of a comparison.

use serde::{Deserialize, Serialize};

/// Every allocation starts at a multiple of this, as `cudaMalloc`'s do.
pub(crate) const ALIGNMENT_BYTES: usize = 256;

/// An allocation on a device; freed on drop.
pub struct Memory {
    address: usize,
    bytes: usize,
    release: Option<Box<dyn FnOnce()>>,
}

impl Memory {
    /// Takes ownership of `address`; `release` frees it.
    pub(crate) fn new(address: usize, bytes: usize, release: Box<dyn FnOnce()>) -> Self {
        assert_eq!(
            address % ALIGNMENT_BYTES,
            0,
            "allocator returned {address:#x}, not aligned"
        );
        Self {
            address,
            bytes,
            release: Some(release),
        }
    }

    /// Start of the memory: a multiple of 256.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Requested size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "Memory({:#x}, {} bytes)",
            self.address, self.bytes
        )
    }
}

/// An element passes when |actual - reference| <= absolute + relative * |reference|.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Floor of the permitted error.
    pub absolute: f64,
    /// Permitted error relative to the reference's magnitude.
    pub relative: f64,
}

impl Tolerance {
    /// The rule above. NaN on either side does not pass.
    pub fn allows(&self, actual: f64, reference: f64) -> bool {
        actual.is_finite()
            && (actual - reference).abs() <= self.absolute + self.relative * reference.abs()
    }
}

/// NaN and infinities in a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonFinite {
    pub count: u64,
    /// Index of the first.
    pub first: Option<usize>,
}

/// How far one tensor is from another. Errors cover the elements where both sides are finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Largest |actual - reference|.
    pub max_abs: f64,
    /// Sum of (actual - reference)^2.
    pub sum_squared_error: f64,
    /// Sum of reference^2.
    pub sum_squared_reference: f64,
    /// NaN and infinities in `actual`.
    pub non_finite: u64,
    /// Elements out of tolerance, including the non-finite ones.
    pub over_limit: u64,
    /// Index of the first of those, in its tile.
    pub first_over: Option<usize>,
}

/// Elements to compare, in tiles of `step` of them.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    pub elements: usize,
    pub step: usize,
}

impl Tiles {
    /// All in one.
    pub fn one(elements: usize) -> Self {
        Self {
            elements,
            step: elements.max(1),
        }
    }
}

impl Comparison {
    /// True when every element passed.
    pub fn passes(&self) -> bool {
        self.over_limit == 0 && self.non_finite == 0
    }

    /// L2 norm of the error over L2 norm of the reference; 0 if both are 0.
    pub fn relative_l2(&self) -> f64 {
        if self.sum_squared_error == 0.0 {
            0.0
        } else {
            (self.sum_squared_error / self.sum_squared_reference).sqrt()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_and_infinity_never_pass() {
        let wide = Tolerance {
            absolute: f64::INFINITY,
            relative: f64::INFINITY,
        };
        assert!(!wide.allows(f64::NAN, 0.0));
        assert!(!wide.allows(f64::INFINITY, f64::INFINITY));
        let strict = Tolerance {
            absolute: 0.0,
            relative: 0.0,
        };
        assert!(!strict.allows(0.0, f64::NAN));
        assert!(strict.allows(1.5, 1.5));
    }

    #[test]
    fn relative_l2_of_equal_zeros_is_zero() {
        assert_eq!(Comparison::default().relative_l2(), 0.0);
        let wrong = Comparison {
            sum_squared_error: 1.0,
            ..Comparison::default()
        };
        assert_eq!(wrong.relative_l2(), f64::INFINITY);
    }

    #[test]
    fn memory_is_released_once() {
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let inner = count.clone();
        drop(Memory::new(
            256,
            8,
            Box::new(move || inner.set(inner.get() + 1)),
        ));
        assert_eq!(count.get(), 1);
    }
}
