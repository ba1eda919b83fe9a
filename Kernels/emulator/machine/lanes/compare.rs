//! Comparisons: a mask of lanes.

use syntax::Type;

use crate::number::{bf16_to_f32, f16_to_f32, flush};
use crate::op::*;

macro_rules! words {
    ($map:expr, |$a:ident, $b:ident| $body:expr) => {{
        fn run(a: &Words, b: &Words) -> u32 {
            (0..LANES).fold(0, |mask, lane| {
                let ($a, $b) = ($map(a[lane]), $map(b[lane]));
                mask | u32::from($body) << lane
            })
        }
        run as Wwp
    }};
}
macro_rules! wides {
    ($map:expr, |$a:ident, $b:ident| $body:expr) => {{
        fn run(a: &Wides, b: &Wides) -> u32 {
            (0..LANES).fold(0, |mask, lane| {
                let ($a, $b) = ($map(a[lane]), $map(b[lane]));
                mask | u32::from($body) << lane
            })
        }
        run as Ddp
    }};
}
macro_rules! whole {
    ($kind:ident, $name:expr, $map:expr) => {
        match $name {
            "eq" => $kind!($map, |a, b| a == b),
            "ne" => $kind!($map, |a, b| a != b),
            "lt" | "lo" => $kind!($map, |a, b| a < b),
            "le" | "ls" => $kind!($map, |a, b| a <= b),
            "gt" | "hi" => $kind!($map, |a, b| a > b),
            "ge" | "hs" => $kind!($map, |a, b| a >= b),
            _ => return None,
        }
    };
}
macro_rules! real {
    ($kind:ident, $name:expr, $map:expr) => {
        match $name {
            "eq" => $kind!($map, |a, b| a == b),
            "ne" => $kind!($map, |a, b| !a.is_nan() && !b.is_nan() && a != b),
            "lt" => $kind!($map, |a, b| a < b),
            "le" => $kind!($map, |a, b| a <= b),
            "gt" => $kind!($map, |a, b| a > b),
            "ge" => $kind!($map, |a, b| a >= b),
            "equ" => $kind!($map, |a, b| a.is_nan() || b.is_nan() || a == b),
            "neu" => $kind!($map, |a, b| a != b),
            "ltu" => $kind!($map, |a, b| !(a >= b)),
            "leu" => $kind!($map, |a, b| !(a > b)),
            "gtu" => $kind!($map, |a, b| !(a <= b)),
            "geu" => $kind!($map, |a, b| !(a < b)),
            "num" => $kind!($map, |a, b| !a.is_nan() && !b.is_nan()),
            "nan" => $kind!($map, |a, b| a.is_nan() || b.is_nan()),
            _ => return None,
        }
    };
}

#[expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "unordered comparisons are true for NaN"
)]
pub fn word(name: &str, ty: Type, flushes: bool) -> Option<Wwp> {
    Some(match ty {
        Type::S32 => whole!(words, name, |x: u32| x as i32),
        Type::U32 | Type::B32 => whole!(words, name, |x: u32| x),
        Type::S16 => whole!(words, name, |x: u32| x as u16 as i16),
        Type::U16 | Type::B16 => whole!(words, name, |x: u32| x as u16),
        Type::F32 if flushes => real!(words, name, |x: u32| flush(f32::from_bits(x))),
        Type::F32 => real!(words, name, f32::from_bits),
        Type::F16 => real!(words, name, |x: u32| f16_to_f32(x & 0xffff)),
        Type::Bf16 => real!(words, name, |x: u32| bf16_to_f32(x & 0xffff)),
        _ => return None,
    })
}

#[expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "unordered comparisons are true for NaN"
)]
pub fn wide(name: &str, ty: Type) -> Option<Ddp> {
    Some(match ty {
        Type::S64 => whole!(wides, name, |x: u64| x as i64),
        Type::U64 | Type::B64 => whole!(wides, name, |x: u64| x),
        Type::F64 => real!(wides, name, f64::from_bits),
        _ => return None,
    })
}
