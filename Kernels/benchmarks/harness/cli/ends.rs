//! Whose fault it is that a worker ends: mostly of the contender whose turn it was, but a thread or a timer of another
//! one may end it too.
//!
//! Whoever ends it alone as well has done it. If nobody is found by that, all race once more; and if that ends too,
//! each of them is left out in turn: without the culprit no worker ends.

use std::slice::from_ref;

use crate::blame::{accused, Outcomes};
use crate::outcome::Outcome;

/// How a worker ended before it had measured everybody.
pub struct End {
    /// Whose turn it was; none in a step of the harness.
    pub contender: Option<String>,
    pub outcome: Outcome,
}

/// What a worker has said of some contenders, and how it ended, if it has.
type Attempt<E> = Result<(Outcomes, Option<End>), E>;

/// An outcome for every contender. `attempt` has a worker measure some.
pub fn measure<E>(
    contenders: &[String],
    attempt: &mut dyn FnMut(&[String]) -> Attempt<E>,
) -> Result<Outcomes, E> {
    let mut outcomes = Outcomes::new();
    let mut again = false;
    loop {
        let mut pending = contenders.to_vec();
        pending.retain(|name| !outcomes.contains_key(name));
        if pending.is_empty() {
            return Ok(outcomes);
        }
        let (known, end) = attempt(&pending)?;
        pending.retain(|name| !known.contains_key(name));
        let reported = !known.is_empty();
        outcomes.extend(known);
        let Some(End { contender, outcome }) = end else {
            continue;
        };
        match contender.filter(|name| pending.contains(name)) {
            Some(name) if pending.len() == 1 || attempt(from_ref(&name))?.1.is_some() => {
                outcomes.insert(name, outcome);
            }
            // Somebody reported an outcome and then took the worker down: retry the rest.
            None if reported => {}
            _ if !again && pending.len() > 1 => again = true,
            victim => {
                let found = without_culprit(&pending, victim.as_deref(), &outcome, attempt)?;
                let all = || pending.iter().map(|name| (name.clone(), outcome.clone()));
                outcomes.extend(found.unwrap_or_else(|| all().collect()));
            }
        }
    }
}

/// The outcomes of a race that does not end because one contender is left out, who answers for the one that did. First
/// the victim: a fault of its own need not show whenever it is alone.
fn without_culprit<E>(
    contenders: &[String],
    victim: Option<&str>,
    outcome: &Outcome,
    attempt: &mut dyn FnMut(&[String]) -> Attempt<E>,
) -> Result<Option<Outcomes>, E> {
    let is_victim = |name: &&String| Some(name.as_str()) == victim;
    let (itself, others): (Vec<_>, Vec<_>) = contenders.iter().partition(is_victim);
    for culprit in itself.into_iter().chain(others) {
        let rest = contenders.iter().filter(|name| *name != culprit);
        let rest: Vec<String> = rest.cloned().collect();
        if rest.is_empty() {
            break;
        }
        if let (mut outcomes, None) = attempt(&rest)? {
            let reason = outcome.failure().unwrap_or_default();
            let own = match is_victim(&culprit) {
                true => outcome.clone(),
                false => accused(victim.unwrap_or("the harness"), reason),
            };
            outcomes.insert(culprit.clone(), own);
            return Ok(Some(outcomes));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// In whose turn a race of these ends, if it does; the number counts races.
    type World = fn(&[String], usize) -> Option<&'static str>;

    /// Who has failed in the end, by what, and after how many races.
    fn judge(contenders: &str, world: World) -> (Vec<String>, Vec<String>, usize) {
        let mut races = 0;
        let mut simulated = |present: &[String]| -> Attempt<()> {
            races += 1;
            if let Some(turn) = world(present, races) {
                let end = End {
                    contender: Some(turn.to_owned()).filter(|turn| turn != "harness"),
                    outcome: Outcome::Error(format!("ended in the turn of {turn}")),
                };
                return Ok((Outcomes::new(), Some(end)));
            }
            let well = |name: &String| (name.clone(), Outcome::Unsupported("well".into()));
            Ok((present.iter().map(well).collect(), None))
        };
        let outcomes = measure(&names(contenders), &mut simulated).unwrap();
        assert_eq!(outcomes.len(), names(contenders).len(), "{outcomes:?}");
        let failed = outcomes
            .iter()
            .filter_map(|(name, outcome)| Some((name.clone(), outcome.failure()?.to_owned())));
        let (failed, reasons) = failed.unzip();
        (failed, reasons, races)
    }

    fn there(present: &[String], name: &str) -> bool {
        present.iter().any(|it| it == name)
    }

    #[test]
    fn whoever_ends_a_worker_alone_too_has_done_it() {
        assert_eq!(judge("a b", |_, _| None).2, 1);
        let own: World = |present, _| there(present, "a").then_some("a");
        let (failed, reasons, races) = judge("a b c", own);
        assert_eq!((failed, races), (names("a"), 3));
        assert_eq!(reasons, ["ended in the turn of a"]);
        assert_eq!(judge("a", own).2, 1);
    }

    #[test]
    fn who_ends_the_worker_in_the_turn_of_another_answers_for_it() {
        // Whoever is first has the turn; alone it is too soon.
        let late: World = |present, _| {
            let others = present.iter().filter(|name| *name != "late");
            let turn = others.min().filter(|_| there(present, "late"))?;
            ["a", "b"].into_iter().find(|name| turn == name)
        };
        let (failed, reasons, _) = judge("a b late", late);
        assert_eq!(failed, names("late"));
        let reason = "with it in the race a failed, and without it did not: ended in the turn of a";
        assert_eq!(reasons, [reason]);
        let harness: World = |present, _| there(present, "b").then_some("harness");
        let (failed, reasons, _) = judge("a b c", harness);
        assert_eq!(failed, names("b"));
        assert!(reasons[0].starts_with("with it in the race the harness failed"));
    }

    #[test]
    fn who_is_well_only_alone_answers_for_himself() {
        let not_alone: World =
            |present, _| (there(present, "a") && present.len() > 1).then_some("a");
        let (failed, reasons, _) = judge("b a c", not_alone);
        assert_eq!(failed, names("a"));
        assert_eq!(reasons, ["ended in the turn of a"]);
    }

    #[test]
    fn an_end_that_does_not_come_back_is_nobodys() {
        let once: World = |_, race| (race == 1).then_some("a");
        assert_eq!(judge("a b", once), (vec![], vec![], 3));
        let once: World = |_, race| (race == 1).then_some("harness");
        assert_eq!(judge("a b", once), (vec![], vec![], 2));
    }

    #[test]
    fn an_end_that_is_anybodys_is_everybodys() {
        let always: World = |_, _| Some("harness");
        assert_eq!(judge("a b", always).0, names("a b"));
        assert_eq!(judge("a", always).0, names("a"));
    }
}
