//! Narrow floating-point formats, and rounding to them from a double in every direction.

/// Which neighbour a value goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    NearestEven,
    NearestAway,
    Zero,
    Down,
    Up,
}

/// What a format does beyond its largest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    /// The highest exponent holds infinity and NaN.
    Ieee,
    /// All ones is NaN; there is no infinity.
    NanOnly,
    /// Every pattern is finite.
    Finite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    exponent: u32,
    mantissa: u32,
    top: Top,
}

pub const F16: Format = Format {
    exponent: 5,
    mantissa: 10,
    top: Top::Ieee,
};
pub const BF16: Format = Format {
    exponent: 8,
    mantissa: 7,
    top: Top::Ieee,
};
pub const TF32: Format = Format {
    exponent: 8,
    mantissa: 10,
    top: Top::Ieee,
};
pub const E4M3: Format = Format {
    exponent: 4,
    mantissa: 3,
    top: Top::NanOnly,
};
pub const E5M2: Format = Format {
    exponent: 5,
    mantissa: 2,
    top: Top::Ieee,
};
pub const E3M2: Format = Format {
    exponent: 3,
    mantissa: 2,
    top: Top::Finite,
};
pub const E2M3: Format = Format {
    exponent: 2,
    mantissa: 3,
    top: Top::Finite,
};
pub const E2M1: Format = Format {
    exponent: 2,
    mantissa: 1,
    top: Top::Finite,
};

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn sign_bit(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }

    /// The pattern of the largest finite value.
    const fn largest(self) -> u32 {
        let all = self.sign_bit() - 1;
        match self.top {
            Top::Ieee => all - (1 << self.mantissa),
            Top::NanOnly => all - 1,
            Top::Finite => all,
        }
    }

    /// NaN as the hardware writes it: all ones. Formats without one saturate.
    const fn nan(self) -> u32 {
        match self.top {
            Top::Finite => self.largest(),
            _ => self.sign_bit() - 1,
        }
    }

    /// The value of a pattern.
    pub fn decode(self, bits: u32) -> f32 {
        let body = bits & (self.sign_bit() - 1);
        let negative = bits & self.sign_bit() != 0;
        let magnitude = if body > self.largest() {
            match self.top {
                Top::Ieee if body == self.largest() + 1 => f32::INFINITY,
                _ => f32::NAN,
            }
        } else {
            let exponent = (body >> self.mantissa) as i32;
            let fraction = body & ((1 << self.mantissa) - 1);
            let (significand, exponent) = match exponent {
                0 => (fraction, 1),
                _ => (fraction | 1 << self.mantissa, exponent),
            };
            significand as f32 * power(exponent - self.bias() - self.mantissa as i32) as f32
        };
        if negative {
            -magnitude
        } else {
            magnitude
        }
    }

    /// The pattern of a value; beyond the largest one it is that one where `saturates`.
    pub fn encode(self, value: f64, rounding: Rounding, saturates: bool) -> u32 {
        if value.is_nan() {
            return self.nan();
        }
        let sign = if value.is_sign_negative() {
            self.sign_bit()
        } else {
            0
        };
        let magnitude = value.abs();
        let overflow = || match self.top {
            Top::Ieee => sign | (self.largest() + 1),
            Top::NanOnly => sign | self.nan(),
            Top::Finite => sign | self.largest(),
        };
        if magnitude.is_infinite() {
            return if saturates {
                sign | self.largest()
            } else {
                overflow()
            };
        }
        let least = 1 - self.bias();
        let exponent = exponent_of(magnitude).max(least);
        let units = magnitude * power(self.mantissa as i32 - exponent);
        let whole = units.floor();
        let rest = units - whole;
        let up = match rounding {
            Rounding::NearestEven => rest > 0.5 || (rest == 0.5 && whole % 2.0 == 1.0),
            Rounding::NearestAway => rest >= 0.5,
            Rounding::Zero => false,
            Rounding::Down => rest > 0.0 && sign != 0,
            Rounding::Up => rest > 0.0 && sign == 0,
        };
        let significand = whole as u64 + u64::from(up);
        let bits = (((exponent - least) as u64) << self.mantissa) + significand;
        if bits <= u64::from(self.largest()) {
            return sign | bits as u32;
        }
        // Rounding towards zero never leaves the finite values.
        let stays = saturates
            || !up && rounding != Rounding::NearestEven && rounding != Rounding::NearestAway;
        if stays {
            sign | self.largest()
        } else {
            overflow()
        }
    }
}

/// Two to a power, for normal results.
pub fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn exponent_of(magnitude: f64) -> i32 {
    (magnitude.to_bits() >> 52) as i32 - 1023
}

/// The sum rounded so that a second rounding, to fewer than 51 bits, is exact: inexact sums end in one.
pub fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let back = sum - a;
    let error = (a - (sum - back)) + (b - back);
    if error == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    // Towards the error: the neighbour there is odd.
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away {
        sum.to_bits() + 1
    } else {
        sum.to_bits() - 1
    })
}

/// A double, rounded to odd if it was inexact, as a single.
pub fn single(value: f64, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value || value.is_nan() {
        return nearest;
    }
    let towards_zero = |nearest: f32| {
        if back.abs() > value.abs() {
            step(nearest, false)
        } else {
            nearest
        }
    };
    match rounding {
        Rounding::NearestEven => nearest,
        Rounding::Zero => towards_zero(nearest),
        Rounding::Down if back > value => step(nearest, nearest <= 0.0),
        Rounding::Up if back < value => step(nearest, nearest >= 0.0),
        Rounding::NearestAway | Rounding::Down | Rounding::Up => nearest,
    }
}

// The next magnitude up or down.
fn step(value: f32, away: bool) -> f32 {
    if value == 0.0 {
        return value;
    }
    f32::from_bits(if away {
        value.to_bits() + 1
    } else {
        value.to_bits() - 1
    })
}

pub fn flush(value: f32) -> f32 {
    if value.is_subnormal() {
        f32::from_bits(value.to_bits() & 1 << 31)
    } else {
        value
    }
}

pub fn bf16_to_f32(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

pub fn f32_to_bf16(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return 0x7fff;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

pub fn f16_to_f32(bits: u32) -> f32 {
    let sign = (bits & 0x8000) << 16;
    let body = bits & 0x7fff;
    if body >= 0x7c00 {
        return f32::from_bits(sign | 0x7f80_0000 | (body & 0x3ff) << 13);
    }
    // Exact for subnormals too.
    let magnitude = f32::from_bits(body << 13) * f32::from_bits(239 << 23);
    f32::from_bits(magnitude.to_bits() | sign)
}

pub fn f32_to_f16(value: f32) -> u32 {
    let bits = value.to_bits();
    let sign = bits >> 16 & 0x8000;
    let body = bits & 0x7fff_ffff;
    if body > 0x7f80_0000 {
        return 0x7fff;
    }
    if body >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if body < 0x3880_0000 {
        // Adding half puts the unit of the smallest half in the last place; the addition rounds.
        let sum = f32::from_bits(body) + 0.5;
        return sign | (sum.to_bits() - 0.5f32.to_bits());
    }
    sign | (((body + 0xfff + (body >> 13 & 1)) >> 13) - (112 << 10))
}

/// A scale of eight exponent bits: a power of two; all ones is NaN.
pub fn ue8m0_to_f32(bits: u32) -> f32 {
    match bits & 0xff {
        0xff => f32::NAN,
        0 => f32::from_bits(1 << 22),
        exponent => f32::from_bits(exponent << 23),
    }
}

/// The exponent of a scale, rounded towards zero or up; saturates at the largest.
pub fn f32_to_ue8m0(value: f32, rounding: Rounding) -> u32 {
    if value.is_nan() {
        return 0xff;
    }
    let bits = value.abs().to_bits();
    let (exponent, fraction) = (bits >> 23, bits & 0x7f_ffff);
    let up = match (rounding, exponent) {
        // Half of the smallest normal is the value of exponent 0.
        (Rounding::Up, 0) => fraction > 1 << 22,
        (Rounding::Up, _) => fraction != 0,
        _ => false,
    };
    (exponent + u32::from(up)).min(0xfe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_survive_decoding_and_encoding() {
        for format in [F16, BF16, E4M3, E5M2, E3M2, E2M3, E2M1] {
            for bits in 0..format.sign_bit() * 2 {
                let value = format.decode(bits);
                if value.is_nan() {
                    assert_eq!(
                        format.encode(value.into(), Rounding::NearestEven, false),
                        format.nan()
                    );
                    continue;
                }
                for rounding in [
                    Rounding::NearestEven,
                    Rounding::Zero,
                    Rounding::Up,
                    Rounding::Down,
                ] {
                    assert_eq!(
                        format.encode(value.into(), rounding, false),
                        bits,
                        "{format:?} {value}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_quick_conversions_are_the_general_ones() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let value = f32::from_bits((state >> 32) as u32);
            // Near the range of a half as well.
            for value in [
                value,
                value.clamp(-70000.0, 70000.0) * 1e-6,
                value.clamp(-1e5, 1e5),
            ] {
                assert_eq!(
                    f32_to_f16(value),
                    F16.encode(value.into(), Rounding::NearestEven, false),
                    "{value:e}"
                );
                assert_eq!(
                    f32_to_bf16(value),
                    BF16.encode(value.into(), Rounding::NearestEven, false),
                    "{value:e}"
                );
            }
        }
        for bits in 0..0x10000 {
            assert!(
                f16_to_f32(bits).to_bits() == F16.decode(bits).to_bits()
                    || f16_to_f32(bits).is_nan()
            );
        }
    }

    #[test]
    fn documented_values() {
        assert_eq!(E4M3.decode(0x7e), 448.0);
        assert_eq!(E5M2.decode(0x7b), 57344.0);
        assert_eq!(E2M1.decode(7), 6.0);
        assert_eq!(E2M3.decode(0x1f), 7.5);
        assert_eq!(E3M2.decode(0x1f), 28.0);
        assert_eq!(E4M3.encode(1e9, Rounding::NearestEven, true), 0x7e);
        assert_eq!(E4M3.encode(1e9, Rounding::NearestEven, false), 0x7f);
        assert_eq!(E2M1.encode(2.5, Rounding::NearestEven, true), 4);
        assert_eq!(F16.encode(65520.0, Rounding::NearestEven, false), 0x7c00);
        assert_eq!(F16.encode(65520.0, Rounding::Zero, false), 0x7bff);
        assert_eq!(ue8m0_to_f32(127), 1.0);
        assert_eq!(f32_to_ue8m0(1.5, Rounding::Up), 128);
        assert_eq!(f32_to_ue8m0(1.5, Rounding::Zero), 127);
    }

    #[test]
    fn sums_to_odd_round_once() {
        // 1 + 2^-24 + 2^-80 lies above the middle of two singles.
        let sum = add_to_odd(1.0 + power(-24), power(-80));
        assert_eq!(single(sum, Rounding::NearestEven), 1.0 + f32::EPSILON);
        assert_eq!(single(sum, Rounding::Down), 1.0);
        assert_eq!(single(-sum, Rounding::Down), -1.0 - f32::EPSILON);
        assert_eq!(single(sum, Rounding::Zero), 1.0);
        assert_eq!(single(sum, Rounding::Up), 1.0 + f32::EPSILON);
    }
}
