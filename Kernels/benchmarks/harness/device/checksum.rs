//! A checksum that any device can compute in parallel: the same number for the same bytes.
//!
//! The wrapping sum of mix(word + position * INCREMENT) over all 8-byte little-endian words, the
//! last one padded with zeros and positions counted from 1, is mixed with the length at the end.
//! Position matters, summation order does not. `cuda/check.cu` has the same arithmetic.

use rayon::prelude::*;

/// splitmix64's increment and finaliser, as in `numeric`'s counter-based numbers.
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Words per unit of parallel work.
const STEP_WORDS: usize = 1 << 17;

pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    let sum = bytes
        .par_chunks(STEP_WORDS * 8)
        .enumerate()
        .map(|(chunk, part)| sum_words(part, (chunk * STEP_WORDS) as u64))
        .reduce(|| 0, u64::wrapping_add);
    finish(sum, bytes.len())
}

/// The last step, which CUDA leaves to the host.
pub(crate) fn finish(sum: u64, bytes: usize) -> u64 {
    mix(sum ^ bytes as u64)
}

fn sum_words(bytes: &[u8], first: u64) -> u64 {
    let mut sum = 0u64;
    for (index, chunk) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let position = (first + index as u64 + 1).wrapping_mul(INCREMENT);
        sum = sum.wrapping_add(mix(u64::from_le_bytes(word).wrapping_add(position)));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_value_position_and_length() {
        let base = of_bytes(&[1, 2, 3, 0, 0, 0, 0, 0, 9]);
        assert_ne!(base, of_bytes(&[1, 2, 3, 0, 0, 0, 0, 0, 8]));
        assert_ne!(base, of_bytes(&[9, 2, 3, 0, 0, 0, 0, 0, 1]));
        assert_ne!(base, of_bytes(&[1, 2, 3, 0, 0, 0, 0, 0, 9, 0]));
    }

    #[test]
    fn chunks_give_the_sum_of_the_whole() {
        let bytes: Vec<u8> = (0..STEP_WORDS * 8 * 2 + 13)
            .map(|i| (i * 7) as u8)
            .collect();
        assert_eq!(of_bytes(&bytes), finish(sum_words(&bytes, 0), bytes.len()));
    }
}
