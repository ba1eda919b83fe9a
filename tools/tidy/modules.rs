//! MODULE.bazel, MODULE.bazel.lock and the central registry must agree, checked without network access.
//!
//! `bazel/registry/published.json`, maintained by hand, lists the published versions and their dependencies. From it
//! this resolves the modules as Bazel does, so that an unpublished version or a stale lock is found by whoever makes
//! the change and not by the next person with internet.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Module -> version -> module -> required version.
type Published = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;
type Module = (String, String);

const REGISTRY: &str = "https://bcr.bazel.build/modules";
/// Has dependencies of its own, and comes with Bazel rather than from a registry.
const BUILT_IN: &str = "bazel_tools";

/// The disagreements, one sentence each. `bazel` is Bazel's version.
pub fn check(
    module: &str,
    bazel: &str,
    published: &str,
    lock: &str,
) -> serde_json::Result<Vec<String>> {
    let published: Published = serde_json::from_str(published)?;
    let lock: Value = serde_json::from_str(lock)?;
    let mut roots = direct(module);
    roots.push((BUILT_IN.to_owned(), bazel.trim().to_owned()));

    let asked = reachable(&roots, &published, &BTreeMap::new());
    let mut complaints: Vec<String> = asked
        .iter()
        .filter(|(name, version)| !published.get(name).is_some_and(|of| of.contains_key(version)))
        .map(|(name, version)| {
            format!(
                "{name} {version} is not in bazel/registry/published.json: look it up in the central \
                registry and add it with its dependencies"
            )
        })
        .collect();

    let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, version) in &asked {
        let best = newest.entry(name).or_insert(version);
        if order(version, best) == Ordering::Greater {
            *best = version;
        }
    }
    let selected = reachable(&roots, &published, &newest);
    let files = asked.iter().map(|module| (module, "MODULE.bazel"));
    let files = files.chain(selected.iter().map(|module| (module, "source.json")));
    for ((name, version), file) in files.filter(|((name, _), _)| name != BUILT_IN) {
        let address = format!("{REGISTRY}/{name}/{version}/{file}");
        if lock["registryFileHashes"].get(&address).is_none() {
            complaints.push(format!(
                "MODULE.bazel.lock does not pin {file} of {name} {version}: run 'bazel mod deps' \
                on a machine with internet, and commit the result"
            ));
        }
    }
    Ok(complaints)
}

/// The `bazel_dep` lines of a MODULE.bazel.
fn direct(module: &str) -> Vec<Module> {
    module
        .lines()
        .filter_map(|line| line.trim().strip_prefix("bazel_dep("))
        .filter_map(|line| {
            let mut quoted = line.split('"').skip(1).step_by(2).map(str::to_owned);
            Some((quoted.next()?, quoted.next()?))
        })
        .collect()
}

/// Every module reachable from the roots, each at its required version or, if given, the chosen one.
fn reachable(
    roots: &[Module],
    published: &Published,
    chosen: &BTreeMap<&str, &str>,
) -> BTreeSet<Module> {
    let mut seen = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some((name, asked)) = open.pop() {
        let version = chosen
            .get(&name[..])
            .map_or(asked, |&version| version.to_owned());
        let further = published
            .get(&name)
            .and_then(|versions| versions.get(&version));
        if seen.insert((name, version)) {
            open.extend(
                further
                    .into_iter()
                    .flatten()
                    .map(|(n, v)| (n.clone(), v.clone())),
            );
        }
    }
    seen
}

/// Bazel's order of versions: numbers by value and before words, a pre-release before its release.
fn order(left: &str, right: &str) -> Ordering {
    let parse = |version: &str| {
        let (release, pre) = version.split_once('-').unwrap_or((version, ""));
        let parts = |text: &str| -> Vec<(bool, u64, String)> {
            text.split('.')
                .map(|part| match part.parse() {
                    Ok(number) => (false, number, String::new()),
                    Err(_) => (true, 0, part.to_owned()),
                })
                .collect()
        };
        (parts(release), pre.is_empty(), parts(pre))
    };
    parse(left).cmp(&parse(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = r#"{
        "a": {"1.0": {"b": "1.9"}, "2.0": {"b": "1.10"}},
        "b": {"1.9": {"c": "3"}, "1.10": {}},
        "c": {"3": {}},
        "bazel_tools": {"7": {"b": "1.9"}}
    }"#;

    fn complaints(module: &str, pinned: &[&str]) -> String {
        let hashes: BTreeMap<String, &str> = pinned
            .iter()
            .map(|file| (format!("{REGISTRY}/{file}"), "0"))
            .collect();
        let lock = serde_json::json!({ "registryFileHashes": hashes }).to_string();
        check(module, "7\n", PUBLISHED, &lock).unwrap().join("\n")
    }

    const LOCKED: [&str; 5] = [
        "a/2.0/MODULE.bazel",
        "a/2.0/source.json",
        "b/1.10/MODULE.bazel",
        "b/1.10/source.json",
        "b/1.9/MODULE.bazel",
    ];

    #[test]
    fn the_newest_version_that_anybody_asks_for_is_selected() {
        let module = "bazel_dep(name = \"a\", version = \"2.0\")\n";
        // Only b 1.9 requires c, and it loses against 1.10: read, but not used.
        let mut pinned = LOCKED.to_vec();
        pinned.push("c/3/MODULE.bazel");
        assert_eq!(complaints(module, &pinned), "");
        let found = complaints(module, &LOCKED[1..]);
        assert!(found.contains("MODULE.bazel of a 2.0"), "{found}");
        assert!(found.contains("MODULE.bazel of c 3"), "{found}");
    }

    #[test]
    fn a_version_that_nobody_published_is_named() {
        let found = complaints("bazel_dep(name = \"a\", version = \"2.1\")\n", &[]);
        assert!(found.contains("a 2.1 is not in"), "{found}");
    }

    #[test]
    fn versions_are_ordered_as_bazel_orders_them() {
        for (less, greater) in [
            ("1.9", "1.10"),
            ("1.0-rc1", "1.0"),
            ("1.3.1", "1.3.1.bcr.3"),
            ("1.3.1.bcr.3", "1.3.2"),
        ] {
            assert_eq!(order(less, greater), Ordering::Less, "{less} {greater}");
        }
    }
}
