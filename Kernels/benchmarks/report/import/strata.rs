//! Steps chosen evenly.

/// The middle of each of `count` equal parts of `total` steps, with the steps of that part.
pub struct Strata {
    total: u64,
    count: u64,
    next: u64,
}

impl Strata {
    pub fn new(total: u64, count: u64) -> Strata {
        Strata {
            total,
            count: count.min(total),
            next: 0,
        }
    }

    fn bound(&self, part: u64) -> u64 {
        (u128::from(part) * u128::from(self.total) / u128::from(self.count)) as u64
    }
}

impl Iterator for Strata {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.next == self.count {
            return None;
        }
        let (begin, end) = (self.bound(self.next), self.bound(self.next + 1));
        self.next += 1;
        Some((begin + (end - begin) / 2, end - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (total, count) in [(1, 16), (7, 3), (16, 16), (u64::MAX, 1000)] {
            let parts: Vec<(u64, u64)> = Strata::new(total, count).collect();
            assert_eq!(parts.len() as u64, count.min(total));
            assert_eq!(parts.iter().map(|(_, weight)| weight).sum::<u64>(), total);
            assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0));
            assert!(parts.last().unwrap().0 < total);
        }
    }
}
