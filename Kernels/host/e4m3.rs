//! FP8 e4m3 as bytes, in a form that vectorises.

use crate::{Element, Plain};

/// One code, an element without a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct E4m3(pub u8);

// SAFETY: a transparent byte.
unsafe impl Plain for E4m3 {}

impl Element for E4m3 {
    #[inline(always)]
    fn widen(self) -> f32 {
        decode(self.0)
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        Self(encode(value))
    }
    #[inline(always)]
    fn widen_all(from: &[Self], to: &mut [f32]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from.widen();
        }
    }
    #[inline(always)]
    fn narrow_all(from: &[f32], to: &mut [Self]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = Self::narrow(from);
        }
    }
}

const MAX: f32 = 448.0;
const NAN: u32 = 0x7f;
/// Difference of the exponent biases, shifted to the position of an e4m3 exponent.
const BIAS: u32 = (127 - 7) << 3;
const LEAST_NORMAL: f32 = 1.0 / 64.0;

/// To nearest, ties to even; saturates; NaN stays NaN.
#[inline(always)]
pub fn encode(value: f32) -> u8 {
    let bits = value.to_bits();
    let magnitude = value.abs();
    let bounded = if magnitude > MAX { MAX } else { magnitude };
    let bounded_bits = bounded.to_bits();
    let odd = bounded_bits >> 20 & 1;
    let normal = (bounded_bits.wrapping_add(0x7_ffff + odd) >> 20).wrapping_sub(BIAS);
    // In units of 2^-9, the last bit; adding 1.5 * 2^23 rounds to an integer.
    let subnormal = (bounded * 512.0 + 12_582_912.0).to_bits() & 0xff;
    let finite = if bounded < LEAST_NORMAL {
        subnormal
    } else {
        normal
    };
    let code = if value.is_nan() { NAN } else { finite };
    (bits >> 24 & 0x80 | code) as u8
}

#[inline(always)]
pub fn decode(code: u8) -> f32 {
    let magnitude = u32::from(code) & 0x7f;
    let normal = f32::from_bits((magnitude + BIAS) << 20);
    let subnormal = magnitude as f32 / 512.0;
    let finite = if magnitude < 8 { subnormal } else { normal };
    let value = if magnitude == NAN { f32::NAN } else { finite };
    f32::from_bits(value.to_bits() | u32::from(code & 0x80) << 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back() {
        for code in 0..=u8::MAX {
            assert_eq!(encode(decode(code)), code, "{code:#x}");
        }
        assert_eq!((decode(0x7e), decode(0x01)), (448.0, 1.0 / 512.0));
    }

    #[test]
    fn between_two_codes_the_nearest_wins_and_ties_go_to_even() {
        for code in 0..0x7e_u8 {
            let (low, high) = (decode(code), decode(code + 1));
            let middle = (low + high) / 2.0;
            let even = code + code % 2;
            assert_eq!(encode(middle), even, "{middle}");
            assert_eq!(encode(-middle), even | 0x80);
            assert_eq!(encode(f32::from_bits(middle.to_bits() - 1)), code);
            assert_eq!(encode(f32::from_bits(middle.to_bits() + 1)), code + 1);
        }
    }

    #[test]
    fn what_is_too_large_saturates() {
        for value in [449.0, 464.0, 465.0, 1e30, f32::INFINITY] {
            assert_eq!((encode(value), encode(-value)), (0x7e, 0xfe));
        }
        assert_eq!(encode(f32::NAN) & 0x7f, 0x7f);
    }
}
