//! Element types in memory, and their conversion to and from f32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A type of which any bits are a value.
///
/// # Safety
/// That holds, and there is no padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: numbers, and transparent wrappers of numbers.
unsafe impl Plain for f32 {}
unsafe impl Plain for f16 {}
unsafe impl Plain for bf16 {}
unsafe impl Plain for u8 {}
unsafe impl Plain for i32 {}
unsafe impl Plain for i64 {}

pub trait Element: Plain {
    fn widen(self) -> f32;
    /// Rounds to the nearest value, ties to even.
    fn narrow(value: f32) -> Self;

    /// Both slices have the same length.
    fn widen_all(from: &[Self], to: &mut [f32]);
    fn narrow_all(from: &[f32], to: &mut [Self]);
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn widen_all(from: &[Self], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
    #[inline(always)]
    fn narrow_all(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }
}

impl Element for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        f16::from_f32(value)
    }
    // These use the CPU's conversion instructions if it has them.
    #[inline(always)]
    fn widen_all(from: &[Self], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }
    #[inline(always)]
    fn narrow_all(from: &[f32], to: &mut [Self]) {
        to.convert_from_f32_slice(from);
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        // Rounding up could carry a NaN's payload into its exponent.
        let quiet = bits >> 16 | 0x40;
        bf16::from_bits(if value.is_nan() { quiet } else { rounded } as u16)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_agrees_with_the_library_on_every_upper_half() {
        for upper in 0..=u16::MAX {
            for lower in [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(upper) << 16 | lower);
                let (ours, theirs) = (<bf16 as Element>::narrow(value), bf16::from_f32(value));
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{value:e}");
            }
            let narrow = bf16::from_bits(upper);
            assert_eq!(narrow.widen().to_bits() >> 16, u32::from(upper));
        }
    }

    #[test]
    fn slices_convert_like_elements() {
        fn check<T: Element + PartialEq + std::fmt::Debug>() {
            let values: Vec<f32> = (0..77).map(|index| (index as f32 - 38.0) / 7.0).collect();
            let each: Vec<T> = values.iter().map(|&value| T::narrow(value)).collect();
            let mut all = vec![T::narrow(0.0); values.len()];
            T::narrow_all(&values, &mut all);
            assert_eq!(all, each);
            let mut wide = vec![0.0; values.len()];
            T::widen_all(&all, &mut wide);
            assert!(wide
                .iter()
                .zip(&each)
                .all(|(wide, each)| *wide == each.widen()));
        }
        check::<f32>();
        check::<f16>();
        check::<bf16>();
        check::<crate::E4m3>();
    }
}
