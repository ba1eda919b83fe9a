//! Singles, pairs of singles, and doubles. A NaN result is the hardware's: all bits but the sign.

use super::fused;
use super::{d1, d2, d3};
use crate::number::{add_to_odd, flush, single, Rounding};
use crate::op::*;

/// How an instruction treats its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    pub flushes: bool,
    pub saturates: bool,
    pub rounding: Option<Rounding>,
}

#[inline(always)]
fn taken<const FLUSHES: bool>(bits: u32) -> f32 {
    let value = f32::from_bits(bits);
    if FLUSHES {
        flush(value)
    } else {
        value
    }
}

#[inline(always)]
fn given<const FLUSHES: bool, const SATURATES: bool>(value: f32) -> u32 {
    if SATURATES {
        // NaN becomes 0.
        return if value > 0.0 {
            value.min(1.0).to_bits()
        } else {
            0
        };
    }
    let value = if FLUSHES { flush(value) } else { value };
    if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits()
    }
}

macro_rules! float1 {
    ($mode:expr, |$a:ident| $body:expr) => {{
        fn run<const Z: bool, const S: bool>(a: &Words) -> Words {
            std::array::from_fn(|lane| {
                let $a = taken::<Z>(a[lane]);
                given::<Z, S>($body)
            })
        }
        match ($mode.flushes, $mode.saturates) {
            (false, false) => run::<false, false> as W1,
            (true, false) => run::<true, false>,
            (false, true) => run::<false, true>,
            (true, true) => run::<true, true>,
        }
    }};
}
macro_rules! float2 {
    ($mode:expr, |$a:ident, $b:ident| $body:expr) => {{
        fn run<const Z: bool, const S: bool>(a: &Words, b: &Words) -> Words {
            std::array::from_fn(|lane| {
                let ($a, $b) = (taken::<Z>(a[lane]), taken::<Z>(b[lane]));
                given::<Z, S>($body)
            })
        }
        match ($mode.flushes, $mode.saturates) {
            (false, false) => run::<false, false> as W2,
            (true, false) => run::<true, false>,
            (false, true) => run::<false, true>,
            (true, true) => run::<true, true>,
        }
    }};
}
macro_rules! float3 {
    ($mode:expr, |$a:ident, $b:ident, $c:ident| $body:expr) => {{
        fn run<const Z: bool, const S: bool>(a: &Words, b: &Words, c: &Words) -> Words {
            std::array::from_fn(|lane| {
                let ($a, $b, $c) = (
                    taken::<Z>(a[lane]),
                    taken::<Z>(b[lane]),
                    taken::<Z>(c[lane]),
                );
                given::<Z, S>($body)
            })
        }
        match ($mode.flushes, $mode.saturates) {
            (false, false) => run::<false, false> as W3,
            (true, false) => run::<true, false>,
            (false, true) => run::<false, true>,
            (true, true) => run::<true, true>,
        }
    }};
}

/// One single. `approx` forms are computed in double and rounded once: the hardware's last bits differ.
pub fn single1(base: &str, mode: Mode) -> Option<W1> {
    if mode
        .rounding
        .is_some_and(|rounding| rounding != Rounding::NearestEven)
    {
        return None;
    }
    Some(match base {
        "neg" => float1!(mode, |a| -a),
        "abs" => float1!(mode, |a| a.abs()),
        "rcp" | "rcp.approx" => float1!(mode, |a| 1.0 / a),
        "sqrt" | "sqrt.approx" => float1!(mode, |a| a.sqrt()),
        "rsqrt.approx" => float1!(mode, |a| (1.0 / f64::from(a).sqrt()) as f32),
        "ex2.approx" => float1!(mode, |a| f64::from(a).exp2() as f32),
        "lg2.approx" => float1!(mode, |a| f64::from(a).log2() as f32),
        "sin.approx" => float1!(mode, |a| f64::from(a).sin() as f32),
        "cos.approx" => float1!(mode, |a| f64::from(a).cos() as f32),
        "tanh.approx" => float1!(mode, |a| f64::from(a).tanh() as f32),
        _ => return None,
    })
}

#[inline(always)]
fn least(a: f32, b: f32) -> f32 {
    if a.is_nan() || (b < a) || (b == a && b.is_sign_negative()) {
        b
    } else {
        a
    }
}

#[inline(always)]
fn most(a: f32, b: f32) -> f32 {
    if a.is_nan() || (b > a) || (b == a && b.is_sign_positive()) {
        b
    } else {
        a
    }
}

#[inline(always)]
fn or_nan(a: f32, b: f32, value: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else {
        value
    }
}

fn directed_add<const R: u8>(a: f32, b: f32) -> f32 {
    single(add_to_odd(a.into(), b.into()), direction::<R>())
}

fn directed_product<const R: u8>(a: f32, b: f32) -> f32 {
    single(f64::from(a) * f64::from(b), direction::<R>())
}

fn directed_fma<const R: u8>(a: f32, b: f32, c: f32) -> f32 {
    single(
        add_to_odd(f64::from(a) * f64::from(b), c.into()),
        direction::<R>(),
    )
}

const fn direction<const R: u8>() -> Rounding {
    match R {
        0 => Rounding::Zero,
        1 => Rounding::Down,
        _ => Rounding::Up,
    }
}

pub fn single2(base: &str, mode: Mode) -> Option<W2> {
    Some(
        match (base, mode.rounding.unwrap_or(Rounding::NearestEven)) {
            ("add", Rounding::NearestEven) => float2!(mode, |a, b| a + b),
            ("add", Rounding::Zero) => float2!(mode, |a, b| directed_add::<0>(a, b)),
            ("add", Rounding::Down) => float2!(mode, |a, b| directed_add::<1>(a, b)),
            ("add", Rounding::Up) => float2!(mode, |a, b| directed_add::<2>(a, b)),
            ("sub", Rounding::NearestEven) => float2!(mode, |a, b| a - b),
            ("sub", Rounding::Zero) => float2!(mode, |a, b| directed_add::<0>(a, -b)),
            ("sub", Rounding::Down) => float2!(mode, |a, b| directed_add::<1>(a, -b)),
            ("sub", Rounding::Up) => float2!(mode, |a, b| directed_add::<2>(a, -b)),
            ("mul", Rounding::NearestEven) => float2!(mode, |a, b| a * b),
            ("mul", Rounding::Zero) => float2!(mode, |a, b| directed_product::<0>(a, b)),
            ("mul", Rounding::Down) => float2!(mode, |a, b| directed_product::<1>(a, b)),
            ("mul", Rounding::Up) => float2!(mode, |a, b| directed_product::<2>(a, b)),
            ("div" | "div.approx" | "div.full", Rounding::NearestEven) => {
                float2!(mode, |a, b| a / b)
            }
            ("min", Rounding::NearestEven) => float2!(mode, |a, b| least(a, b)),
            ("max", Rounding::NearestEven) => float2!(mode, |a, b| most(a, b)),
            ("min.NaN", Rounding::NearestEven) => float2!(mode, |a, b| or_nan(a, b, least(a, b))),
            ("max.NaN", Rounding::NearestEven) => float2!(mode, |a, b| or_nan(a, b, most(a, b))),
            ("copysign", Rounding::NearestEven) => float2!(mode, |a, b| b.copysign(a)),
            _ => return None,
        },
    )
}

fn nan_kept(bits: Words) -> Words {
    bits.map(|bits| {
        if bits & 0x7fff_ffff > 0x7f80_0000 {
            0x7fff_ffff
        } else {
            bits
        }
    })
}

pub fn single3(base: &str, mode: Mode) -> Option<W3> {
    if base == "fma"
        && mode
            == (Mode {
                rounding: mode.rounding,
                ..Mode::default()
            })
    {
        if let None | Some(Rounding::NearestEven) = mode.rounding {
            return Some(|a, b, c| nan_kept(fused::fma(a, b, c)));
        }
    }
    Some(
        match (base, mode.rounding.unwrap_or(Rounding::NearestEven)) {
            ("fma", Rounding::NearestEven) => float3!(mode, |a, b, c| a.mul_add(b, c)),
            ("fma", Rounding::Zero) => float3!(mode, |a, b, c| directed_fma::<0>(a, b, c)),
            ("fma", Rounding::Down) => float3!(mode, |a, b, c| directed_fma::<1>(a, b, c)),
            ("fma", Rounding::Up) => float3!(mode, |a, b, c| directed_fma::<2>(a, b, c)),
            ("min", Rounding::NearestEven) => float3!(mode, |a, b, c| least(least(a, b), c)),
            ("max", Rounding::NearestEven) => float3!(mode, |a, b, c| most(most(a, b), c)),
            ("min.NaN", Rounding::NearestEven) => {
                float3!(mode, |a, b, c| or_nan(
                    a,
                    b,
                    or_nan(c, c, least(least(a, b), c))
                ))
            }
            ("max.NaN", Rounding::NearestEven) => {
                float3!(mode, |a, b, c| or_nan(
                    a,
                    b,
                    or_nan(c, c, most(most(a, b), c))
                ))
            }
            _ => return None,
        },
    )
}

macro_rules! both {
    ($mode:expr, $kind:ident, |$($name:ident),+| $body:expr) => {{
        #[inline(always)]
        fn half<const Z: bool>($($name: u64),+) -> u32 {
            $(let $name = taken::<Z>($name as u32);)+
            given::<Z, false>($body)
        }
        if $mode.flushes {
            $kind!(|$($name),+| half::<true>($($name),+) as u64 | (half::<true>($($name >> 32),+) as u64) << 32)
        } else {
            $kind!(|$($name),+| half::<false>($($name),+) as u64 | (half::<false>($($name >> 32),+) as u64) << 32)
        }
    }};
}

/// Two singles in 64 bits.
pub fn pair2(base: &str, mode: Mode) -> Option<D2> {
    if mode.saturates {
        return None;
    }
    Some(
        match (base, mode.rounding.unwrap_or(Rounding::NearestEven)) {
            ("add", Rounding::NearestEven) => both!(mode, d2, |a, b| a + b),
            ("add", Rounding::Zero) => both!(mode, d2, |a, b| directed_add::<0>(a, b)),
            ("add", Rounding::Down) => both!(mode, d2, |a, b| directed_add::<1>(a, b)),
            ("add", Rounding::Up) => both!(mode, d2, |a, b| directed_add::<2>(a, b)),
            ("sub", Rounding::NearestEven) => both!(mode, d2, |a, b| a - b),
            ("mul", Rounding::NearestEven) => both!(mode, d2, |a, b| a * b),
            _ => return None,
        },
    )
}

pub fn pair3(base: &str, mode: Mode) -> Option<D3> {
    if mode.saturates
        || mode
            .rounding
            .is_some_and(|rounding| rounding != Rounding::NearestEven)
    {
        return None;
    }
    Some(match base {
        "fma" => both!(mode, d3, |a, b, c| a.mul_add(b, c)),
        _ => return None,
    })
}

macro_rules! double {
    ($value:expr) => {{
        let value: f64 = $value;
        if value.is_nan() {
            0x7fff_ffff_ffff_ffff
        } else {
            value.to_bits()
        }
    }};
}

pub fn double1(base: &str) -> Option<D1> {
    Some(match base {
        "neg" => d1!(|a| double!(-f64::from_bits(a))),
        "abs" => d1!(|a| double!(f64::from_bits(a).abs())),
        "sqrt" => d1!(|a| double!(f64::from_bits(a).sqrt())),
        "rcp" => d1!(|a| double!(1.0 / f64::from_bits(a))),
        _ => return None,
    })
}

pub fn double2(base: &str) -> Option<D2> {
    Some(match base {
        "add" => d2!(|a, b| double!(f64::from_bits(a) + f64::from_bits(b))),
        "sub" => d2!(|a, b| double!(f64::from_bits(a) - f64::from_bits(b))),
        "mul" => d2!(|a, b| double!(f64::from_bits(a) * f64::from_bits(b))),
        "div" => d2!(|a, b| double!(f64::from_bits(a) / f64::from_bits(b))),
        "min" => d2!(|a, b| double!(f64::from_bits(a).min(f64::from_bits(b)))),
        "max" => d2!(|a, b| double!(f64::from_bits(a).max(f64::from_bits(b)))),
        _ => return None,
    })
}

pub fn double3(base: &str) -> Option<D3> {
    Some(match base {
        "fma" => {
            d3!(|a, b, c| double!(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c))))
        }
        _ => return None,
    })
}
