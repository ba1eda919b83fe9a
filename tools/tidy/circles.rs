//! Modules of one crate that import each other: neither can be read without the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Texts of Rust files by path, and the folders of crates: those with a BUILD file.
pub fn check(files: &BTreeMap<PathBuf, String>, crates: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut by_crate: BTreeMap<&Path, BTreeMap<Vec<String>, &PathBuf>> = BTreeMap::new();
    for file in files.keys() {
        let Some(root) = file.ancestors().skip(1).find(|at| crates.contains(*at)) else {
            continue;
        };
        let module = module_of(file.strip_prefix(root).expect("an ancestor is a prefix"));
        by_crate.entry(root).or_default().insert(module, file);
    }
    let mut found = Vec::new();
    for modules in by_crate.values() {
        let edges: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = modules
            .iter()
            .map(|(module, file)| (*file, imports(module, &files[*file], modules)))
            .collect();
        for (from, direct) in &edges {
            for to in direct {
                if from < to && reaches(to, from, &edges) {
                    let (from, to) = (from.display(), to.display());
                    found.push(format!("{from} and {to} import each other"));
                } else if from > to && !edges[*to].contains(from) && reaches(to, from, &edges) {
                    let (from, to) = (from.display(), to.display());
                    found.push(format!("{from} imports {to}, which leads back to it"));
                }
            }
        }
    }
    found
}

/// `engine/mod.rs` is `engine`, `lib.rs` the crate itself.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main"))
    {
        parts.pop();
    }
    parts
}

/// The files of the modules that a text names by `crate::` or `super::`, tests aside.
fn imports<'a>(
    module: &[String],
    text: &str,
    modules: &BTreeMap<Vec<String>, &'a PathBuf>,
) -> BTreeSet<&'a PathBuf> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for (word, mut base) in [("crate::", Vec::new()), ("super::", module.to_vec())] {
        if word == "super::" && base.pop().is_none() {
            continue;
        }
        for (at, _) in text.match_indices(word) {
            let whole_word =
                !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if whole_word {
                for path in paths(&text[at + word.len()..]) {
                    let full: Vec<String> = base.iter().cloned().chain(path).collect();
                    // The longest part of the path that is a module with a file; never the root, which
                    // every module is part of.
                    let lengths = (base.len() + 1..=full.len()).rev();
                    found.extend(
                        lengths
                            .filter_map(|end| modules.get(&full[..end]))
                            .next()
                            .copied(),
                    );
                }
            }
        }
    }
    found
}

/// `a::b` is one path; `{a, b::c}` are two.
fn paths(text: &str) -> Vec<Vec<String>> {
    let of = |path: &str| -> Vec<String> {
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let names = path[..end.unwrap_or(path.len())].split("::");
        names
            .map(str::to_owned)
            .filter(|name| !name.is_empty())
            .collect()
    };
    match text.strip_prefix('{') {
        None => vec![of(text)],
        Some(group) => {
            let end = group.find('}').unwrap_or(group.len());
            group[..end]
                .split(',')
                .map(|path| of(path.trim()))
                .collect()
        }
    }
}

fn reaches(from: &PathBuf, to: &PathBuf, edges: &BTreeMap<&PathBuf, BTreeSet<&PathBuf>>) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(edges.get(at).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        check(&files, &BTreeSet::from([PathBuf::from("room")]))
    }

    #[test]
    fn a_circle_between_folders_is_found() {
        let circle = [
            ("room/lib.rs", "mod launch; mod engine;"),
            ("room/launch.rs", "use crate::engine::{Engine, State};"),
            ("room/engine/mod.rs", "use crate::launch::Grid;"),
        ];
        let message = "room/engine/mod.rs and room/launch.rs import each other";
        assert_eq!(found(&circle), [message]);
    }

    #[test]
    fn so_is_one_within_a_folder() {
        let circle = [
            ("room/deep/b.rs", "use super::c::C;"),
            ("room/deep/c.rs", "use crate::deep::b::B;"),
        ];
        let message = "room/deep/b.rs and room/deep/c.rs import each other";
        assert_eq!(found(&circle), [message]);
    }

    #[test]
    fn so_is_one_through_a_third_module() {
        let circle = [
            ("room/a.rs", "fn f() { super::deep::b::g() }"),
            ("room/deep/b.rs", "use super::c;"),
            ("room/deep/c.rs", "use crate::a;"),
        ];
        assert_eq!(found(&circle).len(), 3);
    }

    #[test]
    fn one_way_and_from_tests_is_fine() {
        assert_eq!(
            found(&[
                ("room/a.rs", "use crate::deep::b; use crate::c;"),
                ("room/c.rs", "use crate::deep::b;"),
                ("room/deep/b.rs", "#[cfg(test)] mod tests { use crate::a; }"),
                ("room/deep/mod.rs", "mod b; use super::lib;"),
            ]),
            Vec::<String>::new()
        );
    }
}
