//! Whose fault a failure is, where strangers' code shares the worker's process and may reach whatever is there.
//!
//! Whoever fails next to a stranger races again without one. If he is well then, each stranger races with the house
//! alone; one beside whom anybody fails who is well without it answers for that with its own row, and the others race
//! once more without it.

use std::collections::BTreeMap;

use crate::outcome::Outcome;

pub type Outcomes = BTreeMap<String, Outcome>;

/// Races contenders of whom some are strangers, as often as it takes to know whose fault a failure is. `race` races
/// whom it is told to, with nobody else in the process.
pub fn race<E>(
    contenders: &[String],
    strangers: &[String],
    race: &mut dyn FnMut(&[String]) -> Result<Outcomes, E>,
) -> Result<Outcomes, E> {
    let (brought, house): (Vec<_>, Vec<_>) = contenders
        .iter()
        .cloned()
        .partition(|name| strangers.contains(name));
    let outcomes = race(contenders)?;
    let mut court = Court {
        house,
        race,
        heard: BTreeMap::new(),
    };
    let mut victims = Vec::new();
    for name in court.house.clone().iter().chain(&brought) {
        // Whoever harms the house is found by that.
        if !victims.is_empty() && brought.contains(name) {
            break;
        }
        let others = brought.iter().any(|stranger| stranger != name);
        if others && court.harmed(&outcomes, name)?.is_some() {
            victims.push(name.clone());
        }
    }
    if victims.is_empty() {
        return Ok(outcomes);
    }
    let mut guilty = Outcomes::new();
    for stranger in &brought {
        let others = victims.iter().filter(|victim| *victim != stranger);
        let others: Vec<String> = court.house.iter().chain(others).cloned().collect();
        for victim in others {
            let outcomes = court.with(&[&victim, stranger])?.clone();
            if let Some(reason) = court.harmed(&outcomes, &victim)? {
                guilty.insert(stranger.clone(), accused(&victim, &reason));
                break;
            }
        }
    }
    let innocent = |name: &&String| !guilty.contains_key(*name);
    let rest: Vec<&String> = brought.iter().filter(innocent).collect();
    let mut outcomes = court.with(&rest)?.clone();
    victims.extend(court.house.clone());
    for victim in victims {
        // Not one of them, but all together.
        if let Some(reason) = court.harmed(&outcomes, &victim)? {
            outcomes = court.with(&[])?.clone();
            for &name in &rest {
                let outcome = match *name == victim {
                    true => Outcome::Error(reason.clone()),
                    false => accused(&victim, &reason),
                };
                outcomes.insert(name.clone(), outcome);
            }
            break;
        }
    }
    outcomes.extend(guilty);
    Ok(outcomes)
}

struct Court<'a, E> {
    house: Vec<String>,
    race: &'a mut dyn FnMut(&[String]) -> Result<Outcomes, E>,
    /// By the strangers in the race. The first race of all is not here: one failure is no proof.
    heard: BTreeMap<Vec<String>, Outcomes>,
}

impl<E> Court<'_, E> {
    /// The outcomes of a race of the house's contenders and these.
    fn with(&mut self, more: &[&String]) -> Result<&Outcomes, E> {
        let mut strangers: Vec<String> = more.iter().map(|name| (*name).clone()).collect();
        strangers.retain(|name| !self.house.contains(name));
        strangers.sort();
        if !self.heard.contains_key(&strangers) {
            let present = [&self.house[..], &strangers].concat();
            let outcomes = match present.is_empty() {
                true => Outcomes::new(),
                false => (self.race)(&present)?,
            };
            self.heard.insert(strangers.clone(), outcomes);
        }
        Ok(&self.heard[&strangers])
    }

    /// Why somebody fails there who is well without strangers.
    fn harmed(&mut self, outcomes: &Outcomes, name: &String) -> Result<Option<String>, E> {
        let Some(reason) = fails(outcomes, name) else {
            return Ok(None);
        };
        let alone = self.with(&[name])?;
        Ok(fails(alone, name).is_none().then(|| reason.to_owned()))
    }
}

fn fails<'a>(outcomes: &'a Outcomes, name: &str) -> Option<&'a str> {
    outcomes.get(name)?.failure()
}

/// The outcome of who has harmed another.
pub fn accused(victim: &str, reason: &str) -> Outcome {
    Outcome::Error(format!(
        "with it in the race {victim} failed, and without it did not: {reason}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Who fails in a race of these.
    type World = fn(&[String], &str) -> bool;

    /// Who has failed in the end, and in how many races.
    fn judge(contenders: &str, strangers: &str, world: World) -> (Vec<String>, usize) {
        let mut races = 0;
        let mut simulated = |present: &[String]| -> Result<Outcomes, ()> {
            races += 1;
            let outcome = |name: &String| match world(present, name) {
                true => Outcome::Error(format!("{name} is broken")),
                false => Outcome::Unsupported("as good as measured".into()),
            };
            let outcomes = present.iter().map(|name| (name.clone(), outcome(name)));
            Ok(outcomes.collect())
        };
        let all = names(contenders);
        let outcomes = race(&all, &names(strangers), &mut simulated).unwrap();
        assert_eq!(outcomes.len(), all.len(), "{outcomes:?}");
        let failed = outcomes.iter().filter(|(_, it)| it.failure().is_some());
        (failed.map(|(name, _)| name.clone()).collect(), races)
    }

    fn there(present: &[String], name: &str) -> bool {
        present.iter().any(|it| it == name)
    }

    #[test]
    fn a_failure_is_ones_own_unless_it_goes_away_without_strangers() {
        assert_eq!(judge("a b", "", |_, name| name == "a"), (names("a"), 1));
        assert_eq!(judge("a b s", "s", |_, _| false), (vec![], 1));
        // Its own fault, and nobody else could have done it.
        assert_eq!(judge("a b s", "s", |_, name| name == "s"), (names("s"), 1));
        assert_eq!(judge("a b s", "s", |_, name| name == "a"), (names("a"), 2));
    }

    #[test]
    fn a_stranger_answers_for_what_it_does_to_others() {
        let harms: World = |present, name| there(present, "s") && name == "a";
        assert_eq!(judge("a b s", "s", harms), (names("s"), 3));
        assert_eq!(judge("a b s t", "s t", harms).0, names("s"));
        // Also to other strangers, where nobody is at home.
        let harms: World = |present, name| there(present, "s") && name == "t";
        assert_eq!(judge("s t", "s t", harms).0, names("s"));
        // Each in its own way.
        let both: World = |present, name| {
            there(present, "s") && name == "a" || there(present, "t") && name == "b"
        };
        assert_eq!(judge("a b s t u", "s t u", both).0, names("s t"));
    }

    #[test]
    fn it_need_not_harm_the_same_one_again() {
        let mut races = 0;
        let mut anybody = |present: &[String]| -> Result<Outcomes, ()> {
            races += 1;
            let victim = if races == 1 { "a" } else { "b" };
            let outcome = |name: &String| match there(present, "s") && name == victim {
                true => Outcome::Error("hit".into()),
                false => Outcome::Unsupported(String::new()),
            };
            let outcomes = present.iter().map(|name| (name.clone(), outcome(name)));
            Ok(outcomes.collect())
        };
        let outcomes = race(&names("a b s"), &names("s"), &mut anybody).unwrap();
        let failed: Vec<_> = outcomes
            .iter()
            .filter(|(_, it)| it.failure().is_some())
            .collect();
        assert_eq!(failed.len(), 1, "{outcomes:?}");
        assert!(outcomes["s"].failure().unwrap().contains("b failed"));
    }

    #[test]
    fn strangers_who_harm_only_together_answer_together() {
        let together: World =
            |present, name| there(present, "s") && there(present, "t") && name == "a";
        assert_eq!(judge("a s t", "s t", together).0, names("s t"));
    }

    #[test]
    fn one_failure_that_does_not_come_back_is_nobodys() {
        let mut races = 0;
        let mut flaky = |present: &[String]| -> Result<Outcomes, ()> {
            races += 1;
            let outcome = |name: &String| match races == 1 && name == "a" {
                true => Outcome::Error("once".into()),
                false => Outcome::Unsupported(String::new()),
            };
            let outcomes = present.iter().map(|name| (name.clone(), outcome(name)));
            Ok(outcomes.collect())
        };
        let outcomes = race(&names("a s"), &names("s"), &mut flaky).unwrap();
        assert!(outcomes.values().all(|it| it.failure().is_none()));
        assert_eq!((outcomes.len(), races), (2, 3));
    }

    #[test]
    fn the_reason_names_the_victim() {
        let mut harms = |present: &[String]| -> Result<Outcomes, ()> {
            let outcome = |name: &String| match there(present, "s") && name == "a" {
                true => Outcome::Timeout("hung".into()),
                false => Outcome::Unsupported(String::new()),
            };
            Ok(present
                .iter()
                .map(|name| (name.clone(), outcome(name)))
                .collect())
        };
        let outcomes = race(&names("a s"), &names("s"), &mut harms).unwrap();
        let reason = outcomes["s"].failure().unwrap();
        assert_eq!(
            reason,
            "with it in the race a failed, and without it did not: hung"
        );
        assert_eq!(outcomes["a"].failure(), None);
    }
}
