//! What an atomic operation makes of a value.

use syntax::Type;

use crate::number::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::op::Atomic;

pub fn combine(atomic: Atomic, ty: Type, old: u64, value: u64, swap: u64) -> u64 {
    let single = |bits: u64| f32::from_bits(bits as u32);
    let halves = |decode: fn(u32) -> f32, encode: fn(f32) -> u32, steps: u32| {
        (0..steps).fold(0, |result, at| {
            let (a, b) = (
                decode((old >> (16 * at)) as u32 & 0xffff),
                decode((value >> (16 * at)) as u32 & 0xffff),
            );
            let new = match atomic {
                Atomic::Min => a.min(b),
                Atomic::Max => a.max(b),
                _ => a + b,
            };
            result | u64::from(encode(new)) << (16 * at)
        })
    };
    match ty {
        Type::F16x2 => return halves(f16_to_f32, f32_to_f16, 2),
        Type::Bf16x2 => return halves(bf16_to_f32, f32_to_bf16, 2),
        Type::F16 => return halves(f16_to_f32, f32_to_f16, 1),
        Type::Bf16 => return halves(bf16_to_f32, f32_to_bf16, 1),
        _ => {}
    }
    let shift = 64 - ty.bits();
    let mask = u64::MAX >> shift;
    let (old, value) = (old & mask, value & mask);
    let (signed_old, signed_value) = (
        (old << shift) as i64 >> shift,
        (value << shift) as i64 >> shift,
    );
    let new = match (atomic, ty) {
        (Atomic::Add, Type::F32) => (single(old) + single(value)).to_bits().into(),
        (Atomic::Add, Type::F64) => (f64::from_bits(old) + f64::from_bits(value)).to_bits(),
        (Atomic::Add, _) => old.wrapping_add(value),
        (Atomic::Min, Type::F32) => single(old).min(single(value)).to_bits().into(),
        (Atomic::Max, Type::F32) => single(old).max(single(value)).to_bits().into(),
        (Atomic::Min, _) if ty.is_signed() => signed_old.min(signed_value) as u64,
        (Atomic::Max, _) if ty.is_signed() => signed_old.max(signed_value) as u64,
        (Atomic::Min, _) => old.min(value),
        (Atomic::Max, _) => old.max(value),
        (Atomic::And, _) => old & value,
        (Atomic::Or, _) => old | value,
        (Atomic::Xor, _) => old ^ value,
        (Atomic::Exchange, _) => value,
        (Atomic::CompareAndSwap, _) => {
            if old == value {
                swap
            } else {
                old
            }
        }
        (Atomic::Increment, _) => {
            if old >= value {
                0
            } else {
                old + 1
            }
        }
        (Atomic::Decrement, _) => {
            if old == 0 || old > value {
                value
            } else {
                old - 1
            }
        }
    };
    new & mask
}
