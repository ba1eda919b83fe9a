//! Kernels as lines of text, and the comparison of two lists as multisets, ignoring names.

use std::collections::{BTreeMap, BTreeSet};

use crate::elf::Kernel;

/// Fingerprints, each with the names of its kernels.
pub type Listing = BTreeMap<String, Vec<String>>;

/// Every line starts with it, to distinguish a list from other text.
const FIRST_WORD: &str = "text=";

pub fn add(listing: &mut Listing, kernel: Kernel) {
    let identity = format!(
        "{FIRST_WORD}{} arch=sm_{} registers={} barriers={} shared={} stack={}",
        kernel.hash,
        kernel.arch,
        kernel.registers,
        kernel.barriers,
        kernel.shared_bytes,
        kernel.stack_bytes
    );
    listing.entry(identity).or_default().push(kernel.name);
}

/// One line per kernel: its fingerprint, then its name.
pub fn lines(listing: &Listing) -> impl Iterator<Item = String> + '_ {
    listing
        .iter()
        .flat_map(|(identity, names)| names.iter().map(move |name| format!("{identity} {name}")))
}

/// The inverse of `lines`; the error is the offending line.
pub fn parse(text: &str) -> Result<Listing, String> {
    let mut listing = Listing::new();
    for line in text.lines() {
        let (identity, name) = line
            .rsplit_once(' ')
            .filter(|(identity, _)| identity.starts_with(FIRST_WORD))
            .ok_or(line)?;
        listing
            .entry(identity.into())
            .or_default()
            .push(name.into());
    }
    Ok(listing)
}

/// How many kernels two lists share, and those without a counterpart: "-" in the old, "+" in the new.
pub fn compare(old: &Listing, new: &Listing) -> (usize, Vec<String>) {
    let identities: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let (mut shared, mut differences) = (0, Vec::new());
    for identity in identities {
        let names = |listing: &Listing| listing.get(identity).cloned().unwrap_or_default();
        let (old, new) = (names(old), names(new));
        shared += old.len().min(new.len());
        for (sign, mine, others) in [('-', &old, &new), ('+', &new, &old)] {
            // Of equal kernels, those whose name the other side lacks are the likely candidates.
            let mut likely: Vec<&String> = mine.iter().collect();
            likely.sort_by_key(|name| others.contains(name));
            let surplus = mine.len().saturating_sub(others.len());
            differences.extend(
                likely[..surplus]
                    .iter()
                    .map(|name| format!("{sign} {identity} {name}")),
            );
        }
    }
    (shared, differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(kernels: &[(&str, &str)]) -> Listing {
        let text: String = kernels
            .iter()
            .map(|(hash, name)| format!("text={hash} {name}\n"))
            .collect();
        parse(&text).unwrap()
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let kernels = crate::elf::kernels(&crate::elf::testing::cubin("product", b"code")).unwrap();
        let mut listing = Listing::new();
        for kernel in kernels {
            add(&mut listing, kernel);
        }
        let text: Vec<String> = lines(&listing).collect();
        let expected = " arch=sm_90 registers=40 barriers=2 shared=1024 stack=16 product";
        assert!(
            text[0].starts_with("text=") && text[0].ends_with(expected),
            "{text:?}"
        );
        assert_eq!(parse(&text.join("\n")), Ok(listing));
        assert_eq!(parse("text=0 a\nhello world"), Err("hello world".into()));
    }

    #[test]
    fn renamed_kernels_are_equal() {
        let (old, new) = (
            listing(&[("1", "a"), ("2", "b")]),
            listing(&[("2", "c"), ("1", "d")]),
        );
        assert_eq!(compare(&old, &new), (2, Vec::new()));
    }

    #[test]
    fn kernels_are_counted_and_not_only_looked_for() {
        let old = listing(&[("1", "a"), ("1", "b"), ("2", "c")]);
        let new = listing(&[("1", "a"), ("3", "c")]);
        let differences = ["- text=1 b", "- text=2 c", "+ text=3 c"].map(String::from);
        assert_eq!(compare(&old, &new), (1, differences.to_vec()));
    }
}
