//! The order of contenders within a round.

use crate::random::Random;

/// Rounds after which every contender has been at every position, and has followed every other one,
/// equally often: `n` for an even count, `2n` for an odd one.
pub fn latin_square_period(contenders: usize) -> usize {
    match contenders {
        0 | 1 => 1,
        even if even % 2 == 0 => even,
        odd => 2 * odd,
    }
}

/// Order of the contenders in a round: a row of a Williams square (Williams 1949), which is a
/// Latin square balanced for first-order carry-over. An odd count needs the square and its mirror.
///
/// # Panics
/// If there is no contender.
pub fn latin_square(contenders: usize, round: usize) -> Vec<usize> {
    assert!(contenders > 0, "an order needs contenders");
    let row = round % latin_square_period(contenders);
    // First row 0, 1, n-1, 2, n-2, ...: its neighbour differences are all distinct mod n.
    let zigzag = |position: usize| match position % 2 {
        1 => position.div_ceil(2),
        _ => (contenders - position / 2) % contenders,
    };
    let mut order: Vec<usize> = (0..contenders)
        .map(|position| (zigzag(position) + row) % contenders)
        .collect();
    if row >= contenders {
        order.reverse();
    }
    order
}

/// The Williams square with its rows in a fresh seeded order every period.
///
/// Balance within a period stays exact. The shuffle keeps the order from resonating with anything
/// else that is periodic, such as the rotation of buffer sets: with a fixed order, two contenders
/// and four sets, each contender would only ever see two of the sets.
#[derive(Debug, Clone)]
pub struct Schedule {
    contenders: usize,
    seed: u64,
}

impl Schedule {
    /// # Panics
    /// If there is no contender.
    pub fn new(contenders: usize, seed: u64) -> Self {
        assert!(contenders > 0, "a schedule needs contenders");
        Schedule { contenders, seed }
    }

    /// Contender indices in running order.
    pub fn order(&self, round: usize) -> Vec<usize> {
        let period = latin_square_period(self.contenders);
        let cycle = (round / period) as u64;
        let mut random = Random::new(self.seed ^ cycle.wrapping_mul(0xd134_2543_de82_ef95));
        let mut rows: Vec<usize> = (0..period).collect();
        for last in (1..period).rev() {
            rows.swap(last, random.below(last + 1));
        }
        latin_square(self.contenders, rows[round % period])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn assert_balanced(contenders: usize, order: impl Fn(usize) -> Vec<usize>) {
        let mut positions = BTreeMap::new();
        let mut followers = BTreeMap::new();
        let period = latin_square_period(contenders);
        for round in 0..period {
            let row = order(round);
            for (position, &contender) in row.iter().enumerate() {
                *positions.entry((contender, position)).or_insert(0) += 1;
            }
            for pair in row.windows(2) {
                *followers.entry((pair[0], pair[1])).or_insert(0) += 1;
            }
        }
        let each = period / contenders;
        assert_eq!(positions.len(), contenders * contenders);
        assert!(
            positions.values().all(|&count| count == each),
            "{contenders}: {positions:?}"
        );
        assert_eq!(followers.len(), contenders * (contenders - 1));
        assert!(
            followers.values().all(|&count| count == each),
            "{contenders}: {followers:?}"
        );
    }

    #[test]
    fn williams_squares_are_balanced() {
        for contenders in 2..=12 {
            assert_balanced(contenders, |round| latin_square(contenders, round));
            let schedule = Schedule::new(contenders, 42);
            assert_balanced(contenders, |round| schedule.order(round));
        }
    }

    #[test]
    fn two_contenders_alternate() {
        assert_eq!(latin_square(2, 0), [0, 1]);
        assert_eq!(latin_square(2, 1), [1, 0]);
        assert_eq!(latin_square(1, 9), [0]);
    }

    #[test]
    fn schedule_does_not_resonate_with_buffer_rotation() {
        let schedule = Schedule::new(2, 0);
        let mut sets_of_first = [0usize; 4];
        for round in 0..200 {
            let position = schedule.order(round).iter().position(|&c| c == 0).unwrap();
            sets_of_first[(2 * round + position) % 4] += 1;
        }
        assert!(
            sets_of_first.iter().all(|&count| count > 25),
            "{sets_of_first:?}"
        );
    }
}
