//! Contents that are not the same everywhere: rows of their own ranges, columns of their own factors.

use std::sync::Arc;

use numeric::uniform;

/// Uniform values whose range depends on where they are.
///
/// Elements come in slots, such as the rows of a matrix or the tokens of a paged cache. A slot's
/// level names its range. Every value is then multiplied by the factor of its column.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaped {
    slots: Slots,
    /// One per slot; empty if all are of level 0.
    levels: Vec<u8>,
    /// From low to high, one per level.
    ranges: Vec<(f32, f32)>,
    /// One per column, repeating; empty if all are 1.
    factors: Vec<f32>,
}

/// How elements are grouped into slots. Element `i` is in slot `i / outer * inner + i / run % inner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    pub outer: usize,
    pub inner: usize,
    /// Neighbours in one slot; `outer` is a multiple of `run * inner`.
    pub run: usize,
}

impl Slots {
    /// One slot per `elements`.
    pub fn rows(elements: usize) -> Self {
        Self {
            outer: elements,
            inner: 1,
            run: elements,
        }
    }

    /// Rows of `elements` in a tensor of `total`, alike in every `period`-th row.
    pub fn repeating(elements: usize, period: usize, total: usize) -> Self {
        Self {
            outer: total.next_multiple_of(elements * period),
            inner: period,
            run: elements,
        }
    }

    pub fn of(self, index: usize) -> usize {
        index / self.outer * self.inner + index / self.run % self.inner
    }
}

/// The range of memory that nobody may read: every value is NaN.
pub const DEAD: (f32, f32) = (f32::NAN, f32::NAN);

impl Shaped {
    /// The same range everywhere.
    pub fn flat(low: f32, high: f32) -> Self {
        Self {
            slots: Slots::rows(1 << 20),
            levels: Vec::new(),
            ranges: vec![(low, high)],
            factors: Vec::new(),
        }
    }

    /// Ranges by the level of a slot.
    ///
    /// # Panics
    /// If a level has no range.
    pub fn by_slot(slots: Slots, levels: Vec<u8>, ranges: &[(f32, f32)]) -> Self {
        let known = |level: &u8| usize::from(*level) < ranges.len();
        assert!(levels.iter().all(known), "a level without a range");
        assert!(
            slots.outer.is_multiple_of(slots.run * slots.inner),
            "a run that crosses slots"
        );
        Self {
            slots,
            levels,
            ranges: ranges.to_vec(),
            factors: Vec::new(),
        }
    }

    /// The same with a factor per column.
    pub fn times(mut self, factors: Vec<f32>) -> Self {
        self.factors = factors;
        self
    }

    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// For a device: the range of every level, low then high.
    pub fn ranges(&self) -> &[(f32, f32)] {
        &self.ranges
    }

    pub fn levels(&self) -> &[u8] {
        &self.levels
    }

    pub fn factors(&self) -> &[f32] {
        &self.factors
    }

    /// # Panics
    /// If the tensor has more slots than there are levels.
    pub(crate) fn check(&self, name: &str, elements: usize) {
        let slots = elements
            .checked_sub(1)
            .map_or(0, |last| self.slots.of(last) + 1);
        assert!(
            self.levels.is_empty() || slots <= self.levels.len(),
            "'{name}' has {slots} slots, but levels for {}",
            self.levels.len()
        );
    }

    fn range(&self, index: usize) -> (f32, f32) {
        let level = self.levels.get(self.slots.of(index)).copied();
        self.ranges[usize::from(level.unwrap_or(0))]
    }

    pub(crate) fn factor(&self, index: usize) -> f32 {
        match self.factors.len() {
            0 => 1.0,
            columns => self.factors[index % columns],
        }
    }

    /// One element before rounding to its type.
    pub fn element(&self, bits: u32, index: usize) -> f32 {
        let (low, high) = self.range(index);
        uniform(bits, low, high) * self.factor(index)
    }

    /// Elements `start..end` as parts that have one range each.
    pub(crate) fn parts(
        &self,
        start: usize,
        end: usize,
    ) -> impl Iterator<Item = (std::ops::Range<usize>, (f32, f32))> + '_ {
        let run = self.slots.run;
        let starts = std::iter::successors(Some(start), move |at| Some((at / run + 1) * run));
        starts.take_while(move |at| *at < end).map(move |at| {
            let next = (at / run + 1) * run;
            (at..next.min(end), self.range(at))
        })
    }
}

impl From<Shaped> for crate::Fill {
    fn from(shaped: Shaped) -> Self {
        Self::Shaped(Arc::new(shaped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_tokens_as_slots_in_both_layouts() {
        // Pages of 4 tokens, 2 heads of 3 elements: token first, or head first.
        let (page, dim) = (4 * 2 * 3, 3);
        let slots = |run| Slots {
            outer: page,
            inner: 4,
            run,
        };
        let (tokens_first, heads_first) = (slots(2 * dim), slots(dim));
        let token = 2;
        for head in 0..2 {
            let nhd = page + (token * 2 + head) * dim + 1;
            let hnd = page + (head * 4 + token) * dim + 1;
            assert_eq!(tokens_first.of(nhd), 4 + token);
            assert_eq!(heads_first.of(hnd), 4 + token);
        }
        assert_eq!(Slots::rows(7).of(20), 2);
    }

    #[test]
    fn slots_have_their_ranges_and_columns_their_factors() {
        let ranges = [(1.0, 2.0), DEAD, (0.0, 0.0)];
        let shaped = Shaped::by_slot(Slots::rows(4), vec![0, 1, 2], &ranges)
            .times(vec![1.0, 1.0, 1.0, -8.0]);
        let element = |index: usize| shaped.element(numeric::bits(5, 0, index as u64), index);
        let values: Vec<f32> = (0..12).map(element).collect();
        assert!(values[..3].iter().all(|value| (1.0..=2.0).contains(value)));
        assert!((-16.0..=-8.0).contains(&values[3]));
        assert!(values[4..8].iter().all(|value| value.is_nan()));
        assert!(values[8..].iter().all(|value| *value == 0.0));
        let parts: Vec<_> = shaped.parts(3, 10).map(|(part, _)| part).collect();
        assert_eq!(parts, [3..4, 4..8, 8..10]);
    }

    #[test]
    #[should_panic(expected = "'x' has 3 slots, but levels for 2")]
    fn every_slot_needs_a_level() {
        Shaped::by_slot(Slots::rows(4), vec![0, 0], &[(0.0, 1.0)]).check("x", 9);
    }
}
