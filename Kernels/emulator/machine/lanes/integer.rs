//! Integers and bits.

use syntax::Type;

use super::{d1, d2, w1, w2, w3};
use crate::op::*;

/// One operand of up to 32 bits.
pub fn word1(base: &str, ty: Type) -> Option<W1> {
    use Type::{B16, B32, S16, S32, U32};
    Some(match (base, ty) {
        ("not", B16) => w1!(|a| !a & 0xffff),
        ("not", B32) => w1!(|a| !a),
        ("cnot", B32) => w1!(|a| u32::from(a == 0)),
        ("neg", S16) => w1!(|a| a.wrapping_neg() & 0xffff),
        ("neg", S32) => w1!(|a| a.wrapping_neg()),
        ("abs", S16) => w1!(|a| (a as u16 as i16).unsigned_abs().into()),
        ("abs", S32) => w1!(|a| (a as i32).unsigned_abs()),
        ("popc", B32) => w1!(|a| a.count_ones()),
        ("clz", B32) => w1!(|a| a.leading_zeros()),
        ("brev", B32) => w1!(|a| a.reverse_bits()),
        ("bfind", U32) => w1!(|a| 31u32.wrapping_sub(a.leading_zeros())),
        ("bfind", S32) => {
            w1!(|a| 31u32.wrapping_sub((a ^ (a as i32 >> 31) as u32).leading_zeros()))
        }
        ("bfind.shiftamt", U32) => w1!(|a| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        ("bfind.shiftamt", S32) => w1!(|a| {
            let a = a ^ (a as i32 >> 31) as u32;
            if a == 0 {
                u32::MAX
            } else {
                a.leading_zeros()
            }
        }),
        _ => return None,
    })
}

pub fn wide1(base: &str, ty: Type) -> Option<D1> {
    use Type::{B64, S64};
    Some(match (base, ty) {
        ("not", B64) => d1!(|a| !a),
        ("neg", S64) => d1!(|a| a.wrapping_neg()),
        ("abs", S64) => d1!(|a| (a as i64).unsigned_abs()),
        ("brev", B64) => d1!(|a| a.reverse_bits()),
        _ => return None,
    })
}

pub fn wide_to_word(base: &str, ty: Type) -> Option<DW> {
    use Type::{B64, S64, U64};
    Some(match (base, ty) {
        ("popc", B64) => |a| a.map(u64::count_ones),
        ("clz", B64) => |a| a.map(u64::leading_zeros),
        ("bfind", U64) => |a| a.map(|a| 63u32.wrapping_sub(a.leading_zeros())),
        ("bfind", S64) => {
            |a| a.map(|a| 63u32.wrapping_sub((a ^ (a as i64 >> 63) as u64).leading_zeros()))
        }
        ("bfind.shiftamt", U64) => |a| a.map(|a| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        _ => return None,
    })
}

fn low(a: u32) -> i32 {
    i32::from(a as u16 as i16)
}

fn pair(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Two operands. Division by zero gives all ones, its remainder the dividend, as the hardware does.
pub fn word2(base: &str, ty: Type) -> Option<W2> {
    use Type::{S16x2, U16x2, B16, B32, S16, S32, U16, U32};
    Some(match (base, ty) {
        ("add", S32 | U32) => w2!(|a, b| a.wrapping_add(b)),
        ("add", S16 | U16) => w2!(|a, b| a.wrapping_add(b) & 0xffff),
        ("add", U16x2 | S16x2) => w2!(|a, b| pair(a, b, u16::wrapping_add)),
        ("add.sat", S32) => w2!(|a, b| (a as i32).saturating_add(b as i32) as u32),
        ("sub", S32 | U32) => w2!(|a, b| a.wrapping_sub(b)),
        ("sub", S16 | U16) => w2!(|a, b| a.wrapping_sub(b) & 0xffff),
        ("sub.sat", S32) => w2!(|a, b| (a as i32).saturating_sub(b as i32) as u32),
        ("mul.lo", S32 | U32) => w2!(|a, b| a.wrapping_mul(b)),
        ("mul.lo", S16 | U16) => w2!(|a, b| a.wrapping_mul(b) & 0xffff),
        ("mul.hi", U32) => w2!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        ("mul.hi", S32) => w2!(|a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
        ("mul.hi", U16) => w2!(|a, b| ((a & 0xffff) * (b & 0xffff)) >> 16),
        ("mul.hi", S16) => w2!(|a, b| ((low(a) * low(b)) >> 16) as u32 & 0xffff),
        ("mul.wide", U16) => w2!(|a, b| (a & 0xffff) * (b & 0xffff)),
        ("mul.wide", S16) => w2!(|a, b| (low(a) * low(b)) as u32),
        ("div", U32) => w2!(|a, b| a.checked_div(b).unwrap_or(u32::MAX)),
        ("div", S32) => w2!(|a, b| if b == 0 {
            u32::MAX
        } else {
            (a as i32).wrapping_div(b as i32) as u32
        }),
        ("div", U16) => w2!(|a, b| (a & 0xffff).checked_div(b & 0xffff).unwrap_or(0xffff)),
        ("div", S16) => {
            w2!(|a, b| (if low(b) == 0 { -1 } else { low(a) / low(b) }) as u32 & 0xffff)
        }
        ("rem", U32) => w2!(|a, b| a.checked_rem(b).unwrap_or(a)),
        ("rem", S32) => w2!(|a, b| if b == 0 {
            a
        } else {
            (a as i32).wrapping_rem(b as i32) as u32
        }),
        ("rem", U16) => w2!(|a, b| (a & 0xffff).checked_rem(b & 0xffff).unwrap_or(a & 0xffff)),
        ("rem", S16) => {
            w2!(|a, b| (if low(b) == 0 { low(a) } else { low(a) % low(b) }) as u32 & 0xffff)
        }
        ("min", U32) => w2!(|a, b| a.min(b)),
        ("min", S32) => w2!(|a, b| (a as i32).min(b as i32) as u32),
        ("min", U16) => w2!(|a, b| (a & 0xffff).min(b & 0xffff)),
        ("min", S16) => w2!(|a, b| low(a).min(low(b)) as u32 & 0xffff),
        ("min", U16x2) => w2!(|a, b| pair(a, b, u16::min)),
        ("min", S16x2) => w2!(|a, b| pair(a, b, |a, b| (a as i16).min(b as i16) as u16)),
        ("max", U32) => w2!(|a, b| a.max(b)),
        ("max", S32) => w2!(|a, b| (a as i32).max(b as i32) as u32),
        ("max", U16) => w2!(|a, b| (a & 0xffff).max(b & 0xffff)),
        ("max", S16) => w2!(|a, b| low(a).max(low(b)) as u32 & 0xffff),
        ("max", U16x2) => w2!(|a, b| pair(a, b, u16::max)),
        ("max", S16x2) => w2!(|a, b| pair(a, b, |a, b| (a as i16).max(b as i16) as u16)),
        ("and", B32 | B16) => w2!(|a, b| a & b),
        ("or", B32 | B16) => w2!(|a, b| a | b),
        ("xor", B32 | B16) => w2!(|a, b| a ^ b),
        ("shl", B32) => w2!(|a, b| if b < 32 { a << b } else { 0 }),
        ("shl", B16) => w2!(|a, b| if b < 16 { a << b & 0xffff } else { 0 }),
        ("shr", U32 | B32) => w2!(|a, b| if b < 32 { a >> b } else { 0 }),
        ("shr", S32) => w2!(|a, b| (a as i32 >> b.min(31)) as u32),
        ("shr", U16 | B16) => w2!(|a, b| if b < 16 { (a & 0xffff) >> b } else { 0 }),
        ("shr", S16) => w2!(|a, b| (low(a) >> b.min(15)) as u32 & 0xffff),
        _ => return None,
    })
}

pub fn word3(base: &str, ty: Type) -> Option<W3> {
    use Type::{B32, S16, S32, U16, U32};
    Some(match (base, ty) {
        ("mad.lo", S32 | U32) => w3!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("mad.lo", S16 | U16) => w3!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        ("mad.hi", U32) => {
            w3!(|a, b, c| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c))
        }
        ("mad.hi", S32) => w3!(
            |a, b, c| (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32).wrapping_add(c)
        ),
        ("mad.wide", U16) => w3!(|a, b, c| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c)),
        ("mad.wide", S16) => w3!(|a, b, c| ((low(a) * low(b)) as u32).wrapping_add(c)),
        ("sad", U32) => w3!(|a, b, c| a.abs_diff(b).wrapping_add(c)),
        ("sad", S32) => w3!(|a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c)),
        ("prmt", B32) => w3!(|a, b, c| permute(a, b, c)),
        ("shf.l.wrap", B32) => w3!(|a, b, c| (joined(a, b) << (c & 31) >> 32) as u32),
        ("shf.r.wrap", B32) => w3!(|a, b, c| (joined(a, b) >> (c & 31)) as u32),
        ("shf.l.clamp", B32) => w3!(|a, b, c| (u128::from(joined(a, b)) << c.min(32) >> 32) as u32),
        ("shf.r.clamp", B32) => w3!(|a, b, c| (joined(a, b) >> c.min(32)) as u32),
        ("bfe", U32) => w3!(|a, b, c| extract(a.into(), b, c, 32, false) as u32),
        ("bfe", S32) => w3!(|a, b, c| extract(a.into(), b, c, 32, true) as u32),
        ("min", S32) => w3!(|a, b, c| (a as i32).min(b as i32).min(c as i32) as u32),
        ("max", S32) => w3!(|a, b, c| (a as i32).max(b as i32).max(c as i32) as u32),
        ("min", U32) => w3!(|a, b, c| a.min(b).min(c)),
        ("max", U32) => w3!(|a, b, c| a.max(b).max(c)),
        ("dp4a.s32", S32) => w3!(|a, b, c| dot4(a, b, c, true, true)),
        ("dp4a.u32", U32) => w3!(|a, b, c| dot4(a, b, c, false, false)),
        _ => return None,
    })
}

fn dot4(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let byte = |word: u32, at: u32, signed: bool| {
        let byte = (word >> (8 * at)) as u8;
        if signed {
            i32::from(byte as i8)
        } else {
            i32::from(byte)
        }
    };
    (0..4).fold(c, |sum, at| {
        sum.wrapping_add((byte(a, at, a_signed) * byte(b, at, b_signed)) as u32)
    })
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = joined(a, b);
    (0..4).fold(0, |result, at| {
        let choice = selector >> (4 * at) & 15;
        let byte = (bytes >> (8 * (choice & 7))) as u8;
        let byte = if choice & 8 == 0 {
            byte
        } else {
            (byte as i8 >> 7) as u8
        };
        result | u32::from(byte) << (8 * at)
    })
}

/// bfe: the field, with its sign or zeros above it.
fn extract(a: u64, position: u32, length: u32, bits: u32, signed: bool) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if length == 0 {
        return 0;
    }
    let sign_at = (position + length - 1).min(bits - 1);
    let negative = signed && a >> sign_at & 1 == 1;
    let field = if position < 64 { a >> position } else { 0 };
    let kept = length.min(bits.saturating_sub(position));
    let ones = mask(kept);
    field & ones | if negative { !ones } else { 0 }
}

/// bfi: the field put into b.
fn insert(a: u64, b: u64, position: u32, length: u32, bits: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if position >= bits {
        return b;
    }
    let ones = mask(length.min(bits - position)) << position;
    b & !ones | a << position & ones
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

pub fn insert_words(a: &Words, b: &Words, position: &Words, length: &Words) -> Words {
    std::array::from_fn(|lane| {
        insert(
            a[lane].into(),
            b[lane].into(),
            position[lane],
            length[lane],
            32,
        ) as u32
    })
}

pub fn insert_wides(a: &Wides, b: &Wides, position: &Words, length: &Words) -> Wides {
    std::array::from_fn(|lane| insert(a[lane], b[lane], position[lane], length[lane], 64))
}

pub fn extract_wides(signed: bool) -> Dwwd {
    if signed {
        |a, b, c| std::array::from_fn(|lane| extract(a[lane], b[lane], c[lane], 64, true))
    } else {
        |a, b, c| std::array::from_fn(|lane| extract(a[lane], b[lane], c[lane], 64, false))
    }
}

pub fn wide2(base: &str, ty: Type) -> Option<D2> {
    use Type::{B64, S64, U64};
    Some(match (base, ty) {
        ("add", S64 | U64) => d2!(|a, b| a.wrapping_add(b)),
        ("sub", S64 | U64) => d2!(|a, b| a.wrapping_sub(b)),
        ("mul.lo", S64 | U64) => d2!(|a, b| a.wrapping_mul(b)),
        ("mul.hi", U64) => d2!(|a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        ("mul.hi", S64) => d2!(|a, b| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64),
        ("div", U64) => d2!(|a, b| a.checked_div(b).unwrap_or(u64::MAX)),
        ("div", S64) => d2!(|a, b| if b == 0 {
            u64::MAX
        } else {
            (a as i64).wrapping_div(b as i64) as u64
        }),
        ("rem", U64) => d2!(|a, b| a.checked_rem(b).unwrap_or(a)),
        ("rem", S64) => d2!(|a, b| if b == 0 {
            a
        } else {
            (a as i64).wrapping_rem(b as i64) as u64
        }),
        ("min", U64) => d2!(|a, b| a.min(b)),
        ("min", S64) => d2!(|a, b| (a as i64).min(b as i64) as u64),
        ("max", U64) => d2!(|a, b| a.max(b)),
        ("max", S64) => d2!(|a, b| (a as i64).max(b as i64) as u64),
        ("and", B64) => d2!(|a, b| a & b),
        ("or", B64) => d2!(|a, b| a | b),
        ("xor", B64) => d2!(|a, b| a ^ b),
        _ => return None,
    })
}

pub fn wide3(base: &str, ty: Type) -> Option<D3> {
    use Type::{S64, U64};
    Some(match (base, ty) {
        ("mad.lo", S64 | U64) => super::d3!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("mad.hi", U64) => {
            super::d3!(|a, b, c| (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c))
        }
        ("mad.hi", S64) => {
            super::d3!(
                |a, b, c| (((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64)
                    .wrapping_add(c)
            )
        }
        _ => return None,
    })
}

pub fn wide_shift(base: &str, ty: Type) -> Option<Dwd> {
    use Type::{B64, S64, U64};
    Some(match (base, ty) {
        ("shl", B64) => {
            |a, b| std::array::from_fn(|lane| a[lane].checked_shl(b[lane]).unwrap_or(0))
        }
        ("shr", U64 | B64) => {
            |a, b| std::array::from_fn(|lane| a[lane].checked_shr(b[lane]).unwrap_or(0))
        }
        ("shr", S64) => {
            |a, b| std::array::from_fn(|lane| (a[lane] as i64 >> b[lane].min(63)) as u64)
        }
        _ => return None,
    })
}

pub fn word_product(ty: Type) -> Option<Wwd> {
    match ty {
        Type::U32 => {
            Some(|a, b| std::array::from_fn(|lane| u64::from(a[lane]) * u64::from(b[lane])))
        }
        Type::S32 => Some(|a, b| {
            std::array::from_fn(|lane| {
                (i64::from(a[lane] as i32) * i64::from(b[lane] as i32)) as u64
            })
        }),
        _ => None,
    }
}

pub fn word_product_sum(ty: Type) -> Option<Wwdd> {
    match ty {
        Type::U32 => Some(|a, b, c| {
            std::array::from_fn(|lane| {
                (u64::from(a[lane]) * u64::from(b[lane])).wrapping_add(c[lane])
            })
        }),
        Type::S32 => Some(|a, b, c| {
            std::array::from_fn(|lane| {
                ((i64::from(a[lane] as i32) * i64::from(b[lane] as i32)) as u64)
                    .wrapping_add(c[lane])
            })
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_as_documented() {
        assert_eq!(extract(0xabcd, 4, 8, 32, false), 0xbc);
        assert_eq!(extract(0xabcd, 4, 8, 32, true) as u32, 0xffff_ffbc);
        assert_eq!(extract(0x8000_0000, 28, 20, 32, true) as u32, 0xffff_fff8);
        assert_eq!(extract(1, 40, 3, 32, false), 0);
        assert_eq!(insert(0xff, 0, 28, 8, 32) as u32, 0xf000_0000);
        assert_eq!(insert(0xff, 7, 32, 8, 32), 7);
        assert_eq!(permute(0x0403_0201, 0x8807_0605, 0x0f74), 0x01ff_8805);
    }
}
