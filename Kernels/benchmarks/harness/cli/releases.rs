//! `quack@0.6.4`: another release of a baseline's library as a contender of its own.

use contender::Pinned;

use crate::erased::{AnyContender, Contenders};
use crate::usage::shown;
use crate::UsageError;

const MARK: char = '@';

/// Adds the releases that are named to the contenders: after the one that each is a release of, in the order in which
/// they are named.
pub fn add<'a>(
    named: impl Iterator<Item = &'a String>,
    contenders: &mut Contenders,
) -> Result<(), UsageError> {
    for name in named {
        let known = contenders.iter().any(|each| each.identity().name == *name);
        let Some((base, release)) = name.split_once(MARK).filter(|_| !known) else {
            continue;
        };
        let mut names = contenders.iter().map(|each| &each.identity().name);
        let Some(place) = names.position(|name| name == base) else {
            // Said with the names that there are, as of any other unknown name.
            continue;
        };
        let found = &contenders[place];
        let contender = found
            .at(release)
            .ok_or_else(|| unknown(name, base, &**found))?;
        let siblings = contenders[place + 1..].iter().take_while(|each| {
            let sibling = each.identity().name.strip_prefix(base);
            sibling.is_some_and(|rest| rest.starts_with(MARK))
        });
        let end = place + 1 + siblings.count();
        contenders.insert(end, contender);
    }
    Ok(())
}

/// The releases of a contender beside its own, by the names that they race under.
pub fn names_of(contender: &AnyContender) -> Vec<String> {
    let base = &contender.identity().name;
    let others = contender.releases().map_or_else(Vec::new, |it| it.others);
    others
        .iter()
        .map(|it| format!("{base}{MARK}{it}"))
        .collect()
}

fn unknown(name: &str, base: &str, contender: &AnyContender) -> UsageError {
    let name = shown(name);
    let Some(Pinned { pin, .. }) = contender.releases() else {
        return UsageError(format!(
            "no contender '{name}': {base} races in one release only; call it {base}"
        ));
    };
    let own = contender.identity().release();
    let others = names_of(contender);
    let others = match &others[..] {
        [] => "no other is pinned".to_owned(),
        others => format!("pinned beside it: {}", others.join(", ")),
    };
    UsageError(format!(
        "no contender '{name}'; this build links {base}{MARK}{own}, {others}; to pin another, run `{pin}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Support};

    use crate::erased::AnyProblem;

    /// A library of which other releases are pinned, or none at all.
    struct Library {
        identity: Identity,
        others: Option<Vec<String>>,
    }

    impl Library {
        fn boxed(name: &str, version: &str, others: Option<&[&str]>) -> Box<AnyContender> {
            let identity = Identity::baseline(name, version, Some("ab".into()), "one kernel");
            let owned = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
            let others = others.map(owned);
            Box::new(Self { identity, others })
        }
    }

    impl Contender<AnyProblem> for Library {
        fn identity(&self) -> &Identity {
            &self.identity
        }
        fn supports(&self, _: &AnyProblem, _: &DeviceInfo) -> Support {
            Support::Yes
        }
        fn releases(&self) -> Option<Pinned> {
            let others = self.others.clone()?;
            let pin = "artifacts pin VERSION".to_owned();
            Some(Pinned { others, pin })
        }
        fn at(&self, release: &str) -> Option<Box<AnyContender>> {
            let others = self.others.clone()?;
            let own = release == self.identity.release();
            let known = own || others.iter().any(|it| it == release);
            let (identity, others) = (self.identity.at(release), Some(others));
            known.then(|| -> Box<AnyContender> { Box::new(Self { identity, others }) })
        }
        fn bind(
            &self,
            _: &AnyProblem,
            _: &[Buffer],
            _: &DeviceInfo,
        ) -> Result<Box<dyn Bound>, ContenderError> {
            Err(ContenderError::new("not for running"))
        }
    }

    fn add_to_three(names: &[&str]) -> Result<Contenders, String> {
        let wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut contenders = vec![
            Library::boxed("quack", "1.11+r2", Some(&["1.9", "1.10"])),
            Library::boxed("fa4", "4.0.0b36+r3", Some(&[])),
            Library::boxed("liger", "0.8", None),
        ];
        add(wanted.iter(), &mut contenders).map_err(|error| error.to_string())?;
        Ok(contenders)
    }

    fn named(names: &[&str]) -> Vec<String> {
        let contenders = add_to_three(names).unwrap_or_else(|message| panic!("{message}"));
        let names = contenders.iter().map(|each| each.identity().name.clone());
        names.collect()
    }

    fn refused(name: &str) -> String {
        add_to_three(&[name]).err().unwrap_or_default()
    }

    #[test]
    fn releases_race_after_the_one_that_is_linked_in_the_order_they_are_named() {
        let found = named(&["quack@1.11", "liger", "quack@1.9", "quack@1.11"]);
        let expected = ["quack", "quack@1.11", "quack@1.9", "fa4", "liger"];
        assert_eq!(found, expected);
        // Left to the message about unknown names.
        assert_eq!(
            named(&["other@1", "@1.9", "@", ""]),
            ["quack", "fa4", "liger"]
        );
    }

    #[test]
    fn a_release_has_its_own_version_and_only_the_linked_one_an_artifact() {
        let contenders = add_to_three(&["quack@1.11", "quack@1.9"]).unwrap();
        let identities: Vec<&Identity> = contenders.iter().map(|it| it.identity()).collect();
        let [_, linked, older, ..] = &identities[..] else {
            panic!("{identities:?}");
        };
        assert_eq!(linked.version, "1.11+r2");
        assert_eq!(linked.artifact_sha256.as_deref(), Some("ab"));
        assert_eq!(older.version, "1.9+r2");
        assert_eq!(older.artifact_sha256, None);
    }

    #[test]
    fn an_unknown_release_is_answered_with_those_there_are_and_how_to_get_another() {
        assert_eq!(
            refused("quack@2.0"),
            "no contender 'quack@2.0'; this build links quack@1.11, pinned beside it: quack@1.9, quack@1.10; to pin \
             another, run `artifacts pin VERSION`"
        );
        assert_eq!(
            refused("fa4@1"),
            "no contender 'fa4@1'; this build links fa4@4.0.0b36, no other is pinned; to pin another, run `artifacts \
             pin VERSION`"
        );
        assert_eq!(
            refused("liger@0.8"),
            "no contender 'liger@0.8': liger races in one release only; call it liger"
        );
    }

    #[test]
    fn no_release_is_too_odd_for_one_sentence() {
        let long = "9".repeat(100_000);
        let releases = [
            "",
            "@",
            "../x",
            "1.9@",
            "1.9/..",
            " 1.9",
            "1.9\n",
            "1.9+r2",
            "\u{1b}[31m",
            "１.９",
            "v1.9",
            "1.9*",
            &*long,
        ];
        for release in releases {
            let message = refused(&format!("quack@{release}"));
            assert!(message.starts_with("no contender 'quack@"), "{message:?}");
            assert!(
                message.ends_with("run `artifacts pin VERSION`"),
                "{message:?}"
            );
            assert!(message.chars().all(record::is_plain), "{message:?}");
            assert!(message.len() < 300, "{} bytes", message.len());
        }
    }
}
