//! Which ratios a race is about.

use contender::Kind;

/// The pairs whose ratios end a race once they are known: each of our contenders and each other
/// one. Without ours, the baseline and each other one: the named one, else the first.
pub fn pairs_to_know(kinds: &[Kind], named: Option<usize>) -> Vec<(usize, usize)> {
    let of_kind = |wanted| (0..kinds.len()).filter(move |&index| kinds[index] == wanted);
    let mut ours: Vec<usize> = of_kind(Kind::Own).collect();
    if ours.is_empty() {
        let baseline = named.or_else(|| of_kind(Kind::Baseline).next());
        ours.push(baseline.unwrap_or(0));
    }
    let mut pairs = Vec::new();
    for (place, &own) in ours.iter().enumerate() {
        let others = (0..kinds.len()).filter(|other| !ours[..=place].contains(other));
        pairs.extend(others.map(|other| (own, other)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_of_ours_is_to_be_known() {
        use Kind::{Baseline, Own, Reference};
        let two = pairs_to_know(&[Own, Baseline, Own, Baseline], Some(1));
        assert_eq!(two, [(0, 1), (0, 2), (0, 3), (2, 1), (2, 3)]);
        let none = pairs_to_know(&[Reference, Baseline, Baseline], None);
        assert_eq!(none, [(1, 0), (1, 2)]);
        assert_eq!(pairs_to_know(&[Baseline, Baseline], Some(1)), [(1, 0)]);
        assert_eq!(pairs_to_know(&[Own], None), []);
    }
}
