//! Fused multiply-adds in registers, on the widest vector unit of this CPU.

use std::fmt;

/// Independent chains: latency of 4 to 5 cycles on two ports.
const CHAINS: usize = 12;
/// Rounds over the chains in one run: about a millisecond.
const ROUNDS: usize = 400_000;

const SCALE: f32 = 0.999_9;
const SHIFT: f32 = 1e-3;

/// A vector unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Whatever the compiler makes of plain code.
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl fmt::Display for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}

/// Units that this CPU has.
pub(crate) fn available() -> Vec<Unit> {
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_mut, reason = "one unit only")
    )]
    let mut units = vec![Unit::Plain];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            units.push(Unit::Avx2);
        }
        if is_x86_feature_detected!("avx512f") {
            units.push(Unit::Avx512);
        }
    }
    units
}

impl Unit {
    fn lanes(self) -> usize {
        match self {
            Unit::Plain => 4,
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => 8,
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512 => 16,
        }
    }

    /// Operations of one run: a multiplication and an addition per lane, chain and round.
    pub(crate) fn flops(self) -> f64 {
        (2 * self.lanes() * CHAINS * ROUNDS) as f64
    }

    /// One run on this thread; the sum of all lanes.
    pub(crate) fn run(self) -> f32 {
        match self {
            Unit::Plain => plain(),
            // SAFETY: `available` lists the unit only if the CPU has it.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => unsafe { avx2() },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512 => unsafe { avx512() },
        }
    }
}

fn plain() -> f32 {
    let mut values = [[0.5f32; 4]; CHAINS];
    for _ in 0..ROUNDS {
        for chain in &mut values {
            for lane in chain {
                *lane = *lane * SCALE + SHIFT;
            }
        }
    }
    values.iter().flatten().sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2() -> f32 {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps, _mm256_storeu_ps};
    let (scale, shift) = (_mm256_set1_ps(SCALE), _mm256_set1_ps(SHIFT));
    let mut values = [_mm256_set1_ps(0.5); CHAINS];
    for _ in 0..ROUNDS {
        for value in &mut values {
            *value = _mm256_fmadd_ps(*value, scale, shift);
        }
    }
    let mut lanes = [0.0; 8];
    let mut sum = 0.0;
    for value in values {
        // SAFETY: `lanes` holds eight floats.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), value) };
        sum += lanes.iter().sum::<f32>();
    }
    sum
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512() -> f32 {
    use std::arch::x86_64::{_mm512_fmadd_ps, _mm512_reduce_add_ps, _mm512_set1_ps};
    let (scale, shift) = (_mm512_set1_ps(SCALE), _mm512_set1_ps(SHIFT));
    let mut values = [_mm512_set1_ps(0.5); CHAINS];
    for _ in 0..ROUNDS {
        for value in &mut values {
            *value = _mm512_fmadd_ps(*value, scale, shift);
        }
    }
    values
        .iter()
        .map(|value| _mm512_reduce_add_ps(*value))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All units iterate x -> x * SCALE + SHIFT, whose fixed point is SHIFT / (1 - SCALE) = 10.
    #[test]
    fn every_unit_computes_the_same() {
        for unit in available() {
            let lanes = (unit.lanes() * CHAINS) as f32;
            let value = unit.run() / lanes;
            assert!((value - 10.0).abs() < 0.1, "{unit}: {value}");
        }
    }
}
