//! Sequence lengths of a batch, the same in every run.

use numeric::{bits, index_below, uniform};

const SEED: u64 = 11;

/// Log-uniform between `shortest` and `longest`: many short sequences and a few that are very long,
/// as in a server's batch. The last one is always the longest.
pub fn long_tail(batch: usize, shortest: usize, longest: usize) -> Vec<usize> {
    let (low, high) = ((shortest as f32).ln(), (longest as f32).ln());
    (0..batch)
        .map(|index| {
            if index + 1 == batch {
                return longest;
            }
            let drawn = uniform(bits(SEED, batch as u32, index as u64), low, high).exp();
            (drawn as usize).clamp(shortest, longest)
        })
        .collect()
}

/// Between half and all of `longest`, no two alike, in no order: nothing is gained by assuming that
/// sequences are equally long.
pub fn jittered(batch: usize, longest: usize) -> Vec<usize> {
    let step = longest / 2 / batch;
    let jitter =
        |sequence: usize| index_below(bits(SEED, 1, sequence as u64), step as u32) as usize;
    let mut lengths: Vec<usize> = (0..batch)
        .map(|sequence| longest - step * sequence - jitter(sequence))
        .collect();
    for last in (1..batch).rev() {
        let other = index_below(bits(SEED, 2, last as u64), last as u32 + 1);
        lengths.swap(last, other as usize);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_pinned_in_range_and_skewed() {
        let lengths = long_tail(256, 16, 65_536);
        assert_eq!(lengths, long_tail(256, 16, 65_536));
        assert!(lengths.iter().all(|n| (16..=65_536).contains(n)));
        assert_eq!(lengths[255], 65_536);
        let mut sorted = lengths.clone();
        sorted.sort_unstable();
        let mean = lengths.iter().sum::<usize>() / 256;
        assert!(
            sorted[128] * 3 < mean,
            "median {}, mean {mean}",
            sorted[128]
        );
    }
}
