//! Vector instructions: functions that are compiled for each level of them that x86-64 has, and run at
//! the best that the machine has.
//!
//! Floating-point contraction is off at every level, and sums have a fixed number of lanes, so all
//! levels give the same bits.

use std::sync::atomic::{AtomicU8, Ordering};

/// From the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What the program was compiled for: SSE2 on x86-64, Neon on Arm.
    Portable,
    Avx2,
    Avx512,
}

const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

/// Not detected yet.
const UNKNOWN: u8 = u8::MAX;
static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The level in use: the machine's best.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        UNKNOWN => {
            let best = best();
            LEVEL.store(best as u8, Ordering::Relaxed);
            best
        }
        known => ALL[usize::from(known)],
    }
}

#[cfg(target_arch = "x86_64")]
fn best() -> Level {
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx512, is_x86_feature_detected!("avx2")) {
        (true, _) => Level::Avx512,
        (false, true) => Level::Avx2,
        (false, false) => Level::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Level {
    Level::Portable
}

/// Runs `test` at every level that the machine has, for tests that compare them.
pub fn at_every_level(mut test: impl FnMut(Level)) {
    let best = best();
    for level in ALL.into_iter().filter(|&level| level <= best) {
        LEVEL.store(level as u8, Ordering::Relaxed);
        test(level);
    }
    LEVEL.store(best as u8, Ordering::Relaxed);
}

/// Declares a function that is compiled for every level and runs at the machine's. What it calls is
/// compiled with it only if it is inlined: `#[inline(always)]`.
#[macro_export]
macro_rules! vectorized {
    (
        $(#[$attribute:meta])*
        fn $name:ident<$($generic:ident: $bound:path),*>(
            $($argument:ident: $type:ty),* $(,)?
        ) $(-> $result:ty)? $body:block
    ) => {
        $(#[$attribute])*
        fn $name<$($generic: $bound),*>($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512<$($generic: $bound),*>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2<$($generic: $bound),*>($($argument: $type),*) $(-> $result)? $body

            fn portable<$($generic: $bound),*>($($argument: $type),*) $(-> $result)? $body

            match $crate::level() {
                // SAFETY: the machine has this level.
                #[cfg(target_arch = "x86_64")]
                $crate::Level::Avx512 => unsafe { avx512::<$($generic),*>($($argument),*) },
                // SAFETY: the machine has this level.
                #[cfg(target_arch = "x86_64")]
                $crate::Level::Avx2 => unsafe { avx2::<$($generic),*>($($argument),*) },
                _ => portable::<$($generic),*>($($argument),*),
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{exp, sum, Element};

    vectorized! {
        fn sum_of_exp<T: Element>(values: &[T]) -> f32 {
            let mut wide = vec![0.0; values.len()];
            T::widen_all(values, &mut wide);
            sum(&wide, exp)
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let values: Vec<f32> = (0..1000).map(|index| (index as f32).sin() * 9.0).collect();
        let mut first = None;
        at_every_level(|level| {
            assert_eq!(super::level(), level);
            let sum = sum_of_exp::<f32>(&values);
            assert_eq!(
                *first.get_or_insert(sum.to_bits()),
                sum.to_bits(),
                "{level:?}"
            );
        });
        assert_eq!(level(), best());
    }
}
