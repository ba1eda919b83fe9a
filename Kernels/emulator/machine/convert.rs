//! `cvt` in all its forms, one value at a time.

use syntax::Type;

use crate::number::{self, flush, Format, Rounding};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convert {
    pub to: Type,
    pub from: Type,
    pub rounding: Option<Rounding>,
    /// `.rni` and its like: to an integral value.
    pub integral: Option<Rounding>,
    pub flushes: bool,
    pub saturates: bool,
    /// Beyond the largest finite value, that value.
    pub satfinite: bool,
    pub relu: bool,
}

enum Number {
    Whole(i128),
    Real(f64),
}

/// The elements of a packed type: how many bits apart, and their format.
fn packed(ty: Type) -> Option<(u32, Option<Format>)> {
    Some(match ty {
        Type::F16x2 => (16, Some(number::F16)),
        Type::Bf16x2 => (16, Some(number::BF16)),
        Type::E4m3x2 => (8, Some(number::E4M3)),
        Type::E5m2x2 => (8, Some(number::E5M2)),
        Type::E3m2x2 => (8, Some(number::E3M2)),
        Type::E2m3x2 => (8, Some(number::E2M3)),
        Type::E2m1x2 => (4, Some(number::E2M1)),
        Type::Ue8m0x2 => (8, None),
        _ => return None,
    })
}

fn is_float(ty: Type) -> bool {
    matches!(
        ty,
        Type::F16 | Type::Bf16 | Type::F32 | Type::F64 | Type::Tf32
    )
}

fn is_whole(ty: Type) -> bool {
    use Type::{S16, S32, S64, S8, U16, U32, U64, U8};
    matches!(ty, S8 | S16 | S32 | S64 | U8 | U16 | U32 | U64)
}

impl Convert {
    /// Whether the form exists, with one source or two.
    pub fn is_known(&self, sources: usize) -> bool {
        match (packed(self.to), packed(self.from)) {
            (Some(_), Some(_)) => sources == 1,
            (Some(_), None) => sources == 2 && self.from == Type::F32,
            (None, Some(_)) => false,
            (None, None) => {
                let (to, from) = (is_float(self.to), is_float(self.from));
                let rounds = to && (!from || self.to.bits() < self.from.bits());
                // A rounding may be left out where there is nothing to round.
                sources == 1
                    && (!rounds || self.rounding.is_some())
                    && (to || !from || self.integral.is_some())
                    && (is_float(self.to) || is_whole(self.to))
                    && (is_float(self.from) && self.from != Type::Tf32 || is_whole(self.from))
                    && (self.to != Type::Tf32 || self.from == Type::F32)
            }
        }
    }

    pub fn apply(&self, a: u64, b: u64) -> u64 {
        match (packed(self.to), packed(self.from)) {
            (Some((step, to)), None) => {
                let part =
                    |bits: u64| u64::from(self.narrow(f64::from(self.single(bits as u32)), to));
                part(a) << step | part(b)
            }
            (Some((step, to)), Some((source_step, from))) => {
                let part = |bits: u64| {
                    let bits = bits as u32 & ((1 << source_step) - 1);
                    let value = match from {
                        Some(format) => format.decode(bits),
                        None => number::ue8m0_to_f32(bits),
                    };
                    u64::from(self.narrow(value.into(), to))
                };
                part(a >> source_step) << step | part(a)
            }
            _ => self.scalar(a),
        }
    }

    fn single(&self, bits: u32) -> f32 {
        let value = f32::from_bits(bits);
        if self.flushes {
            flush(value)
        } else {
            value
        }
    }

    fn narrow(&self, value: f64, format: Option<Format>) -> u32 {
        let rounding = self.rounding.unwrap_or(Rounding::NearestEven);
        let value = if self.relu && value < 0.0 { 0.0 } else { value };
        match format {
            Some(format) => format.encode(value, rounding, self.satfinite),
            None => number::f32_to_ue8m0(value as f32, rounding),
        }
    }

    fn scalar(&self, bits: u64) -> u64 {
        let number = match self.from {
            Type::F16 => Number::Real(number::F16.decode(bits as u32 & 0xffff).into()),
            Type::Bf16 => Number::Real(number::BF16.decode(bits as u32 & 0xffff).into()),
            Type::F32 => Number::Real(self.single(bits as u32).into()),
            Type::F64 => Number::Real(f64::from_bits(bits)),
            ty if ty.is_signed() => {
                Number::Whole((bits << (64 - ty.bits())) as i64 as i128 >> (64 - ty.bits()))
            }
            ty => Number::Whole(i128::from(bits << (64 - ty.bits()) >> (64 - ty.bits()))),
        };
        if is_float(self.to) {
            return self.real(number);
        }
        let whole = match number {
            Number::Whole(whole) if self.saturates => self.clamp(whole),
            Number::Whole(whole) => whole,
            Number::Real(real) if real.is_nan() => {
                // As the hardware has it: the least of the long integers, 0 for the others.
                if self.to.bits() == 64 {
                    1 << 63
                } else {
                    0
                }
            }
            Number::Real(real) => {
                let real = integral(real, self.integral.unwrap_or(Rounding::Zero));
                self.clamp(real as i128)
            }
        };
        // What its type has no room for is cut; a wider register holds the rest extended.
        let unused = 64 - self.to.bits();
        let bits = (whole as u64) << unused;
        if self.to.is_signed() {
            (bits as i64 >> unused) as u64
        } else {
            bits >> unused
        }
    }

    fn clamp(&self, whole: i128) -> i128 {
        let bits = self.to.bits();
        if self.to.is_signed() {
            whole.clamp(-1 << (bits - 1), (1 << (bits - 1)) - 1)
        } else {
            whole.clamp(0, (1 << bits) - 1)
        }
    }

    fn real(&self, number: Number) -> u64 {
        let mut real = match number {
            Number::Real(real) => real,
            Number::Whole(whole) => whole_to_odd(whole),
        };
        if let Some(rounding) = self.integral {
            real = integral(real, rounding);
        }
        if self.saturates {
            real = if real > 0.0 { real.min(1.0) } else { 0.0 };
        }
        if self.relu && real < 0.0 {
            real = 0.0;
        }
        let rounding = self.rounding.unwrap_or(Rounding::NearestEven);
        match self.to {
            Type::F16 => number::F16.encode(real, rounding, self.satfinite).into(),
            Type::Bf16 => number::BF16.encode(real, rounding, self.satfinite).into(),
            Type::Tf32 => u64::from(number::TF32.encode(real, rounding, self.satfinite)) << 13,
            Type::F32 if real.is_nan() => 0x7fff_ffff,
            Type::F32 => {
                let single = number::single(real, rounding);
                (if self.flushes { flush(single) } else { single })
                    .to_bits()
                    .into()
            }
            _ => match number {
                // A whole number of 64 bits rounds once.
                Number::Whole(whole) => (whole as f64).to_bits(),
                Number::Real(_) => real.to_bits(),
            },
        }
    }
}

// A double that rounds to fewer digits as the whole number would.
fn whole_to_odd(whole: i128) -> f64 {
    let magnitude = whole.unsigned_abs();
    let spare = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> spare << spare;
    let odd = if kept == magnitude {
        kept
    } else {
        kept | 1 << spare
    };
    let value = odd as f64;
    if whole < 0 {
        -value
    } else {
        value
    }
}

fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::NearestEven => value.round_ties_even(),
        Rounding::NearestAway => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(to: Type, from: Type) -> Convert {
        Convert {
            to,
            from,
            rounding: None,
            integral: None,
            flushes: false,
            saturates: false,
            satfinite: false,
            relu: false,
        }
    }

    #[test]
    fn forms_as_documented() {
        let f = |value: f32| u64::from(value.to_bits());
        assert_eq!(
            plain(Type::S64, Type::S32).apply(0xffff_fffe, 0),
            -2i64 as u64
        );
        assert_eq!(plain(Type::U8, Type::U32).apply(0x1ff, 0) & 0xff, 0xff);
        let to_s32 = Convert {
            integral: Some(Rounding::NearestEven),
            ..plain(Type::S32, Type::F32)
        };
        assert_eq!(to_s32.apply(f(2.5), 0) as i32, 2);
        assert_eq!(to_s32.apply(f(-3e9), 0) as i32, i32::MIN);
        assert_eq!(plain(Type::U32, Type::F32).apply(f(-1.0), 0), 0);
        assert_eq!(
            plain(Type::F32, Type::S64).apply(i64::MIN as u64, 0),
            f(-9.223_372e18)
        );
        let down = Convert {
            rounding: Some(Rounding::Down),
            ..plain(Type::F32, Type::U64)
        };
        assert_eq!(down.apply(u64::MAX, 0), f(f32::from_bits(0x5f7f_ffff)));
        let pair = Convert {
            satfinite: true,
            ..plain(Type::E4m3x2, Type::F32)
        };
        assert_eq!(pair.apply(f(1000.0), f(-1.0)), 0x7eb8);
        assert_eq!(
            plain(Type::F16x2, Type::E4m3x2).apply(0x7eb8, 0),
            0x5f00_bc00
        );
        assert_eq!(
            plain(Type::Bf16x2, Type::F32).apply(f(1.0), f(f32::NAN)),
            0x3f80_7fff
        );
        let e2m1 = Convert {
            satfinite: true,
            ..plain(Type::E2m1x2, Type::F32)
        };
        assert_eq!(e2m1.apply(f(6.0), f(-0.5)), 0x79);
        let away = Convert {
            rounding: Some(Rounding::NearestAway),
            ..plain(Type::Tf32, Type::F32)
        };
        assert_eq!(away.apply(0x3f80_1000, 0), 0x3f80_2000);
        let clipped = Convert {
            saturates: true,
            ..plain(Type::F32, Type::F32)
        };
        assert_eq!(clipped.apply(f(-2.0), 0), 0);
        assert_eq!(clipped.apply(f(f32::NAN), 0), 0);
    }
}
