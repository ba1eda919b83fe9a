//! The table of samples: one row per round, one column per contender.

/// Samples of all contenders, aligned by round. A missing sample (dropped by the clock filter, or
/// never taken) is `None`, so that the other samples of the round keep their place.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    columns: Vec<Vec<Option<f64>>>,
}

impl Rounds {
    /// # Panics
    /// If there is no contender.
    pub fn new(contenders: usize) -> Self {
        assert!(contenders > 0, "rounds without a contender");
        Rounds {
            columns: vec![Vec::new(); contenders],
        }
    }

    pub fn contenders(&self) -> usize {
        self.columns.len()
    }

    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds one round, in contender order (not the order in which they ran).
    ///
    /// # Panics
    /// If the number of samples differs from the number of contenders.
    pub fn push(&mut self, samples: &[Option<f64>]) {
        assert_eq!(
            samples.len(),
            self.columns.len(),
            "one sample per contender"
        );
        for (column, sample) in self.columns.iter_mut().zip(samples) {
            column.push(*sample);
        }
    }

    /// One contender's samples, one entry per round.
    pub fn column(&self, contender: usize) -> &[Option<f64>] {
        &self.columns[contender]
    }

    /// One contender's samples without the missing ones.
    pub fn kept(&self, contender: usize) -> Vec<f64> {
        self.columns[contender].iter().flatten().copied().collect()
    }

    /// Forgets one sample, e.g. when the clock filter drops it after the fact.
    pub fn drop_sample(&mut self, contender: usize, round: usize) {
        self.columns[contender][round] = None;
    }

    /// Samples of the rounds in which both contenders have one: two vectors of equal length.
    pub fn pairs(&self, first: usize, second: usize) -> (Vec<f64>, Vec<f64>) {
        self.columns[first]
            .iter()
            .zip(&self.columns[second])
            .filter_map(|(first, second)| first.zip(*second))
            .unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_skip_rounds_with_a_hole() {
        let mut rounds = Rounds::new(2);
        rounds.push(&[Some(1.0), Some(2.0)]);
        rounds.push(&[None, Some(3.0)]);
        rounds.push(&[Some(4.0), Some(5.0)]);
        assert_eq!(rounds.pairs(0, 1), (vec![1.0, 4.0], vec![2.0, 5.0]));
        assert_eq!(rounds.kept(1), vec![2.0, 3.0, 5.0]);
        rounds.drop_sample(1, 0);
        assert_eq!(rounds.pairs(0, 1), (vec![4.0], vec![5.0]));
        assert_eq!(rounds.len(), 3);
    }
}
