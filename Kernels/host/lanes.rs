//! Sums and maxima over a slice with independent lanes, which the compiler turns into vectors.

/// Independent partial results; a fixed number, so that results do not depend on the machine.
const LANES: usize = 16;

/// Elements summed before they are added to the total, which bounds the error of long sums.
const BLOCK: usize = 2048;

/// The sum of `term` over pairs of elements of two slices of the same length.
#[inline(always)]
pub fn sum2(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    assert_eq!(a.len(), b.len());
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    blocks.map(|(a, b)| sum_block(a, b, &term)).sum()
}

#[inline(always)]
fn sum_block(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (rest_a, rest_b) = (a.remainder(), b.remainder());
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane]);
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *lane += term(a, b);
    }
    fold(lanes, |a, b| a + b)
}

#[inline(always)]
pub fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    sum2(values, values, |value, _| term(value))
}

/// The largest value; NaNs are ignored, as in IEEE 754's maximum.
#[inline(always)]
pub fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, value);
    }
    fold(lanes, larger)
}

#[inline(always)]
fn fold(mut lanes: [f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = combine(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_counts_every_element_once() {
        for length in (0..70u32).chain([BLOCK as u32, BLOCK as u32 + 3]) {
            let values: Vec<f32> = (0..length).map(|value| value as f32).collect();
            let expected = (length * length.saturating_sub(1) / 2) as f32;
            assert_eq!(sum(&values, |value| value), expected);
            assert_eq!(sum2(&values, &values, |a, b| a - b), 0.0);
            let last = values.last().copied().unwrap_or(f32::NEG_INFINITY);
            assert_eq!(largest(&values), last);
        }
    }
}
