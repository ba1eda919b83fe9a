//! Counter-based random numbers: a pure function of (seed, tensor, index), so that any element can
//! be recomputed anywhere. `harness/device/cuda/values.cuh` has the same arithmetic for CUDA.

use sha2::{Digest, Sha256};

/// The 64-bit golden ratio, splitmix64's increment.
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// splitmix64's finaliser: a bijection of 64 bits that scatters close inputs.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The state of one tensor's stream; element `i` is `mix(key + i * INCREMENT) >> 32`.
pub fn stream_key(seed: u64, tensor: u32) -> u64 {
    mix(mix(seed.wrapping_add(INCREMENT)).wrapping_add(u64::from(tensor)))
}

/// 32 random bits for one element.
#[inline]
pub fn bits(seed: u64, tensor: u32, index: u64) -> u32 {
    stream_bits(stream_key(seed, tensor), index)
}

/// The same for callers that draw many elements of one tensor and have its key.
#[inline]
pub fn stream_bits(key: u64, index: u64) -> u32 {
    (mix(key.wrapping_add(index.wrapping_mul(INCREMENT))) >> 32) as u32
}

/// Bits that may be shown: unlike those of a stream, from which its seed can be computed, they tell neither `secret`
/// nor each other.
pub fn one_way(secret: u64, stream: u32, index: u64) -> u64 {
    let digest = Sha256::new()
        .chain_update(secret.to_le_bytes())
        .chain_update(stream.to_le_bytes())
        .chain_update(index.to_le_bytes())
        .finalize();
    let first = digest.iter().take(8);
    first.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// Maps bits to [low, high] in f32: 24 bits, one multiplication, one addition, no contraction.
#[inline]
pub fn uniform(bits: u32, low: f32, high: f32) -> f32 {
    let unit = (bits >> 8) as f32 * (1.0 / 16_777_216.0);
    low + (high - low) * unit
}

/// Maps bits to an integer in [0, below): the high half of a 64-bit product.
#[inline]
pub fn index_below(bits: u32, below: u32) -> u32 {
    ((u64::from(bits) * u64::from(below)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins the stream: a change here changes every input of every committed result.
    #[test]
    fn values_are_pinned() {
        let first: Vec<u32> = (0..4).map(|index| bits(42, 0, index)).collect();
        assert_eq!(
            first,
            [1_805_317_444, 3_315_957_377, 1_639_179_540, 3_031_586_141]
        );
    }

    #[test]
    fn seed_tensor_and_index_all_matter() {
        let base = bits(1, 2, 3);
        assert_ne!(base, bits(2, 2, 3));
        assert_ne!(base, bits(1, 3, 3));
        assert_ne!(base, bits(1, 2, 4));
    }

    /// What a stream shows, its seed follows from: here from one whole state, in general from a few values.
    #[test]
    fn a_stream_tells_its_seed_and_what_is_shown_does_not() {
        fn unshift(shifted: u64, by: u32) -> u64 {
            (0..64 / by).fold(shifted, |z, _| shifted ^ (z >> by))
        }
        let inverse = |factor: u64| {
            (0..6).fold(factor, |guess: u64, _| {
                guess.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(guess)))
            })
        };
        let unmix = |z: u64| {
            let z = unshift(z, 31).wrapping_mul(inverse(0x94D0_49BB_1331_11EB));
            let z = unshift(z, 27).wrapping_mul(inverse(0xBF58_476D_1CE4_E5B9));
            unshift(z, 30)
        };
        let secret = 0x0012_3456_789A_BCDE;
        let told = |key: u64| unmix(unmix(key).wrapping_sub(5)).wrapping_sub(INCREMENT);
        assert_eq!(told(stream_key(secret, 5)), secret);
        assert_ne!(told(one_way(secret, 5, 0)), secret);
        let shown = [one_way(1, 2, 3), one_way(2, 2, 3), one_way(1, 3, 3)];
        assert!(!shown.contains(&one_way(1, 2, 4)));
        assert_eq!(one_way(1, 2, 3), shown[0]);
    }

    #[test]
    fn uniform_stays_in_range_and_fills_it() {
        let values: Vec<f32> = (0..100_000)
            .map(|i| uniform(bits(7, 0, i), -1.0, 1.0))
            .collect();
        assert!(values.iter().all(|value| (-1.0..=1.0).contains(value)));
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / 1e5;
        let square = values
            .iter()
            .map(|value| f64::from(value * value))
            .sum::<f64>()
            / 1e5;
        assert!(mean.abs() < 0.01, "mean {mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.01, "mean square {square}");
    }

    #[test]
    fn index_covers_exactly_its_range() {
        let mut seen = [false; 10];
        for i in 0..1000 {
            seen[index_below(bits(7, 1, i), 10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(index_below(u32::MAX, 10), 9);
    }
}
