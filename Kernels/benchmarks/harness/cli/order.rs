//! The order in which problems are measured.

use std::collections::BTreeMap;

use crate::erased::AnyProblem;

/// As listed; or, for a run with a time limit, suites and operations in turn, so that a cut takes an
/// equal share of each.
pub fn order(problems: &[Box<AnyProblem>], may_be_cut: bool) -> Vec<usize> {
    let groups = problems.iter().map(|problem| {
        let workload = problem.workload();
        (workload.suite.clone(), problem.op().to_owned())
    });
    match may_be_cut {
        true => in_turn(groups),
        false => (0..problems.len()).collect(),
    }
}

/// Indices sorted by how many of the same group came before them.
fn in_turn<G: Ord>(groups: impl Iterator<Item = G>) -> Vec<usize> {
    let mut seen: BTreeMap<G, usize> = BTreeMap::new();
    let mut places: Vec<(usize, usize)> = groups
        .enumerate()
        .map(|(place, group)| {
            let turn = seen.entry(group).or_insert(0);
            *turn += 1;
            (*turn, place)
        })
        .collect();
    places.sort_unstable();
    places.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::in_turn;

    #[test]
    fn groups_take_turns_and_nothing_is_lost() {
        let order = in_turn("aaabbc".chars());
        assert_eq!(order, [0, 3, 5, 1, 4, 2]);
    }
}
