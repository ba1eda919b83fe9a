//! Halves and bfloats, alone or in pairs, and singles mixed with them.

use super::{w1, w2, w3};
use crate::number::{
    add_to_odd, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, Rounding, BF16, F16,
};
use crate::op::*;

// A single has more than twice a half's digits and two more, so rounding its sum or product again is exact.
macro_rules! table {
    ($decode:ident, $encode:ident, $format:ident, $one:ident, $two:ident, $three:ident) => {
        pub fn $one(base: &str, paired: bool) -> Option<W1> {
            macro_rules! each {
                (|$a:ident| $body:expr) => {{
                    fn part(bits: u32) -> u32 {
                        let $a = $decode(bits & 0xffff);
                        $encode($body)
                    }
                    if paired {
                        w1!(|a| part(a) | part(a >> 16) << 16)
                    } else {
                        w1!(|a| part(a))
                    }
                }};
            }
            Some(match base {
                "neg" if paired => w1!(|a| a ^ 0x8000_8000),
                "neg" => w1!(|a| a ^ 0x8000),
                "abs" => w1!(|a| a & 0x7fff_7fff),
                "ex2.approx" => each!(|a| f64::from(a).exp2() as f32),
                "tanh.approx" => each!(|a| f64::from(a).tanh() as f32),
                _ => return None,
            })
        }

        pub fn $two(base: &str, paired: bool) -> Option<W2> {
            macro_rules! each {
                (|$a:ident, $b:ident| $body:expr) => {{
                    fn part(a: u32, b: u32) -> u32 {
                        let ($a, $b) = ($decode(a & 0xffff), $decode(b & 0xffff));
                        $encode($body)
                    }
                    if paired {
                        w2!(|a, b| part(a, b) | part(a >> 16, b >> 16) << 16)
                    } else {
                        w2!(|a, b| part(a, b))
                    }
                }};
            }
            Some(match base {
                "add" => each!(|a, b| a + b),
                "sub" => each!(|a, b| a - b),
                "mul" => each!(|a, b| a * b),
                "min" => each!(|a, b| a.min(b)),
                "max" => each!(|a, b| a.max(b)),
                "min.NaN" => each!(|a, b| if a.is_nan() || b.is_nan() {
                    f32::NAN
                } else {
                    a.min(b)
                }),
                "max.NaN" => each!(|a, b| if a.is_nan() || b.is_nan() {
                    f32::NAN
                } else {
                    a.max(b)
                }),
                _ => return None,
            })
        }

        pub fn $three(base: &str, paired: bool) -> Option<W3> {
            macro_rules! each {
                ($relu:expr) => {{
                    fn part(a: u32, b: u32, c: u32) -> u32 {
                        let [a, b, c] = [a, b, c].map(|bits| f64::from($decode(bits & 0xffff)));
                        let sum = add_to_odd(a * b, c);
                        let sum = if $relu && sum < 0.0 { 0.0 } else { sum };
                        $format.encode(sum, Rounding::NearestEven, false)
                    }
                    if paired {
                        w3!(|a, b, c| part(a, b, c) | part(a >> 16, b >> 16, c >> 16) << 16)
                    } else {
                        w3!(|a, b, c| part(a, b, c))
                    }
                }};
            }
            match base {
                "fma" => Some(each!(false)),
                "fma.relu" => Some(each!(true)),
                _ => None,
            }
        }
    };
}
table!(f16_to_f32, f32_to_f16, F16, f16_1, f16_2, f16_3);
table!(bf16_to_f32, f32_to_bf16, BF16, bf16_1, bf16_2, bf16_3);

/// `fma.rn.f32.bf16` and its like: singles summed with narrow operands.
pub fn mixed3(narrow_is_bf16: bool) -> W3 {
    if narrow_is_bf16 {
        w3!(|a, b, c| bf16_to_f32(a & 0xffff)
            .mul_add(bf16_to_f32(b & 0xffff), f32::from_bits(c))
            .to_bits())
    } else {
        w3!(|a, b, c| f16_to_f32(a & 0xffff)
            .mul_add(f16_to_f32(b & 0xffff), f32::from_bits(c))
            .to_bits())
    }
}

pub fn mixed2(base: &str, narrow_is_bf16: bool) -> Option<W2> {
    Some(match (base, narrow_is_bf16) {
        ("add", true) => w2!(|a, b| (bf16_to_f32(a & 0xffff) + f32::from_bits(b)).to_bits()),
        ("sub", true) => w2!(|a, b| (bf16_to_f32(a & 0xffff) - f32::from_bits(b)).to_bits()),
        ("add", false) => w2!(|a, b| (f16_to_f32(a & 0xffff) + f32::from_bits(b)).to_bits()),
        ("sub", false) => w2!(|a, b| (f16_to_f32(a & 0xffff) - f32::from_bits(b)).to_bits()),
        _ => return None,
    })
}
