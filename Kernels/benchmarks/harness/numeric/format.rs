//! Small binary floating-point formats, all handled by one rule: sign, exponent, mantissa.

/// A format of at most 16 bits: one sign bit, `exponent_bits`, `mantissa_bits`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub exponent_bits: u32,
    pub mantissa_bits: u32,
    /// The code of the largest finite magnitude, without its sign bit.
    pub max_code: u32,
    pub overflow: Overflow,
}

/// What happens to a magnitude above the largest finite one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// IEEE 754: infinity.
    Infinity,
    /// It becomes the largest finite value, as with CUDA's `__NV_SATFINITE`: the format has no
    /// infinity, and an input tensor must not turn into NaN because of its range.
    Saturate,
}

pub(crate) const F16: Format = Format {
    exponent_bits: 5,
    mantissa_bits: 10,
    max_code: 0x7BFF,
    overflow: Overflow::Infinity,
};
pub(crate) const BF16: Format = Format {
    exponent_bits: 8,
    mantissa_bits: 7,
    max_code: 0x7F7F,
    overflow: Overflow::Infinity,
};
/// The "fn" variant: no infinity, NaN is 0x7F and 0xFF, the largest finite value is 448.
pub(crate) const F8E4M3: Format = Format {
    exponent_bits: 4,
    mantissa_bits: 3,
    max_code: 0x7E,
    overflow: Overflow::Saturate,
};

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn sign_bit(self) -> u32 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    fn nan_code(self) -> u32 {
        self.sign_bit() - 1
    }

    pub fn max_finite(self) -> f64 {
        self.decode(self.max_code)
    }

    /// Rounds to nearest, ties to even.
    pub fn encode(self, value: f64) -> u32 {
        if value.is_nan() {
            return self.nan_code();
        }
        let sign = if value.is_sign_negative() {
            self.sign_bit()
        } else {
            0
        };
        sign | self.encode_magnitude(value.abs())
    }

    fn encode_magnitude(self, magnitude: f64) -> u32 {
        let overflow_code = match self.overflow {
            Overflow::Infinity => self.max_code + 1,
            Overflow::Saturate => self.max_code,
        };
        if magnitude.is_infinite() {
            return overflow_code;
        }
        let least_exponent = 1 - self.bias();
        let exponent = floor_log2(magnitude).max(least_exponent);
        // In ulps; exact, because the scale is a power of two.
        let scaled = magnitude * power_of_two(self.mantissa_bits as i32 - exponent);
        // The hidden bit is part of the integer, so one addition handles subnormals, normals and a
        // carry into the next binade.
        let code = ((exponent - least_exponent) as u64) << self.mantissa_bits;
        let code = code + scaled.round_ties_even() as u64;
        if code > u64::from(self.max_code) {
            overflow_code
        } else {
            code as u32
        }
    }

    pub fn decode(self, code: u32) -> f64 {
        let sign = if code & self.sign_bit() == 0 {
            1.0
        } else {
            -1.0
        };
        let magnitude = code & (self.sign_bit() - 1);
        if magnitude > self.max_code {
            let infinity = self.overflow == Overflow::Infinity && magnitude == self.max_code + 1;
            return if infinity {
                sign * f64::INFINITY
            } else {
                f64::NAN
            };
        }
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let exponent = (magnitude >> self.mantissa_bits) as i32;
        let hidden = if exponent == 0 {
            0
        } else {
            1 << self.mantissa_bits
        };
        let unit = exponent.max(1) - self.bias() - self.mantissa_bits as i32;
        sign * f64::from(mantissa + hidden) * power_of_two(unit)
    }
}

/// floor(log2), or for zero and f64 subnormals a value below every format's minimum exponent.
fn floor_log2(magnitude: f64) -> i32 {
    ((magnitude.to_bits() >> 52) & 0x7FF) as i32 - 1023
}

pub(crate) fn power_of_two(exponent: i32) -> f64 {
    assert!(
        (-1022..=1023).contains(&exponent),
        "2^{exponent} is not a normal f64"
    );
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// E8M0: an unsigned power of two, 2^(code - 127); 0xFF is NaN.
pub(crate) mod e8m0 {
    use super::{floor_log2, power_of_two};

    pub const MAX_CODE: u8 = 0xFE;

    /// The nearest power of two by value, ties to the even code; out-of-range values saturate. A
    /// negative value is meaningless as a scale and becomes NaN.
    pub fn encode(value: f64) -> u8 {
        if value.is_nan() || value < 0.0 {
            return 0xFF;
        }
        let exponent = floor_log2(value);
        let code = exponent + 127;
        if code < 0 {
            return 0;
        }
        if code >= i32::from(MAX_CODE) {
            return MAX_CODE;
        }
        let fraction = value * power_of_two(-exponent);
        let up = fraction > 1.5 || (fraction == 1.5 && code % 2 == 1);
        code as u8 + u8::from(up)
    }

    pub fn decode(code: u8) -> f64 {
        if code == 0xFF {
            return f64::NAN;
        }
        power_of_two(i32::from(code) - 127)
    }
}
