//! Shapes that nobody has tuned for: drawn from a seed, within the ranges of real models.
//!
//! docs/BENCHMARKING.md states the ranges and the models they come from. No constant is fitted to
//! such a shape: the seed changes with each published run.

use contender::Workload;
use numeric::{bits, index_below, uniform};

/// Shapes that a suite draws where it has one list for all operations.
pub const SHAPES: u64 = 24;

/// `count` workloads of different names, drawn one after another.
pub fn distinct<T>(
    seed: u64,
    count: u64,
    draw: impl Fn(Draws) -> T,
    workload: impl Fn(&T) -> &Workload,
) -> Vec<T> {
    let mut drawn: Vec<T> = Vec::new();
    let mut shapes = 0..16 * count;
    while let Some(shape) = shapes.next().filter(|_| drawn.len() < count as usize) {
        let next = draw(Draws { seed, shape });
        let name = |drawn: &T| workload(drawn).name == workload(&next).name;
        if !drawn.iter().any(name) {
            drawn.push(next);
        }
    }
    drawn
}

/// The choices of one shape: a pure function of the seed, the shape's number and the choice's.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    seed: u64,
    shape: u64,
}

impl Draws {
    fn bits(self, choice: u32) -> u32 {
        bits(self.seed, choice, self.shape)
    }

    pub fn below(self, choice: u32, below: usize) -> usize {
        index_below(self.bits(choice), below as u32) as usize
    }

    /// True once in `times`.
    pub fn once_in(self, choice: u32, times: usize) -> bool {
        self.below(choice, times) == 0
    }

    pub fn one_of<T: Copy>(self, choice: u32, items: &[T]) -> T {
        items[self.below(choice, items.len())]
    }

    /// Log-uniform, so that small and large sizes are equally likely; a multiple of `step`.
    pub fn size(self, choice: u32, low: usize, high: usize, step: usize) -> usize {
        let (low, high) = (low.max(step), high.max(step));
        let drawn = uniform(self.bits(choice), (low as f32).ln(), (high as f32).ln()).exp();
        let drawn = (drawn as usize).clamp(low, high);
        (drawn / step * step).clamp(low.next_multiple_of(step), high / step * step)
    }

    /// Lengths of the sequences of a batch: equal once in four, otherwise each between a share and
    /// all of `longest`, which one of them has.
    pub fn lengths(self, choice: u32, batch: usize, longest: usize) -> Vec<usize> {
        if self.once_in(choice, 4) {
            return vec![longest; batch];
        }
        let shortest = longest as f32 * self.one_of(choice + 1, &[0.05, 0.5, 0.9]);
        (0..batch)
            .map(|sequence| {
                if sequence == 0 {
                    return longest;
                }
                let random = bits(self.seed ^ self.shape, choice + 2, sequence as u64);
                (uniform(random, shortest, longest as f32) as usize).clamp(1, longest)
            })
            .collect()
    }
}

/// For tests: the same seed gives the same shapes, another seed others, and most differ from each
/// other.
#[cfg(test)]
pub fn assert_drawn<T: PartialEq + std::fmt::Debug>(draw: impl Fn(u64) -> Vec<T>, least: usize) {
    let shapes = draw(1);
    assert_eq!(shapes, draw(1));
    assert_ne!(shapes, draw(2));
    assert!(shapes.len() >= least, "{} shapes", shapes.len());
    let repeated = |index: &usize| shapes[..*index].contains(&shapes[*index]);
    let repeats = (0..shapes.len()).filter(repeated).count();
    assert!(repeats * 4 <= shapes.len(), "{repeats} repeats");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_in_range_and_spread_over_it() {
        let sizes: Vec<usize> = (0..400)
            .map(|shape| Draws { seed: 9, shape }.size(0, 100, 10_000, 8))
            .collect();
        assert!(sizes
            .iter()
            .all(|size| (104..=10_000).contains(size) && size % 8 == 0));
        let small = sizes.iter().filter(|size| **size < 1000).count();
        assert!((150..250).contains(&small), "{small}");
    }

    #[test]
    fn a_batch_has_its_longest_sequence_and_no_empty_one() {
        for shape in 0..50 {
            let lengths = Draws { seed: 3, shape }.lengths(5, 12, 700);
            assert_eq!(lengths.len(), 12);
            assert_eq!(lengths.iter().max(), Some(&700));
            assert!(lengths.iter().all(|length| *length > 0));
        }
    }
}
