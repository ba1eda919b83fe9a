//! Releases of one library in one race: which of them made it faster or slower.

use std::collections::BTreeMap;

use record::markdown_table::{cell, header, line};
use record::{interval_text, ratio_text, speedup_over, ContenderKind, Row, RowKey, Speedup};
use stats::{geomean, RatioOptions, Verdict};

use crate::View;

/// What tells a release in a contender's name: `quack@0.6.4`.
const MARK: char = '@';

/// A library, and the release that a row is of.
fn release(row: &Row) -> (&str, &str) {
    let name = &row.contender.name;
    name.split_once(MARK).unwrap_or_else(|| {
        let version = &row.contender.version;
        let release = version.split_once('+').map_or(&**version, |(it, _)| it);
        (name, release)
    })
}

/// What stands before a number of a release, in the order of Python's versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    /// `.dev1`, `a1`, `b36`, `rc1`: before the release without it.
    Before(u8),
    /// Nothing more.
    End,
    After,
    /// `.4`, and what is none of the above.
    Next(String),
}

impl Word {
    fn of(text: &str) -> Self {
        match text.trim_start_matches(['.', '-', '_']) {
            "dev" => Self::Before(0),
            "a" | "alpha" => Self::Before(1),
            "b" | "beta" => Self::Before(2),
            "c" | "rc" | "pre" | "preview" => Self::Before(3),
            "post" | "r" | "rev" => Self::After,
            other => Self::Next(other.to_owned()),
        }
    }
}

/// By numbers, not digits: 0.6.10 comes after 0.6.9, and 4.0.0b36 after 4.0.0b9 and before 4.0.0.
fn order(release: &str) -> Vec<(Word, u64)> {
    let mut rest = release;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let word = rest.find(|c: char| c.is_ascii_digit());
        let (word, after) = rest.split_at(word.unwrap_or(rest.len()));
        let digits = after.find(|c: char| !c.is_ascii_digit());
        let (digits, after) = after.split_at(digits.unwrap_or(after.len()));
        let number = match digits {
            "" => 0,
            digits => digits.parse().unwrap_or(u64::MAX),
        };
        parts.push((Word::of(word), number));
        rest = after;
    }
    parts.push((Word::End, 0));
    parts
}

fn races_as_baseline(row: &Row) -> bool {
    row.time.is_some() && row.contender.kind == ContenderKind::Baseline
}

/// A release against the one before it in a suite: library, op, dtype and suite, place, older and newer.
type Group<'a> = (
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    Vec<(Word, u64)>,
    &'a str,
    &'a str,
);

/// A table of the steps from release to release; nothing where no library races against itself.
pub fn releases_markdown(view: &View) -> String {
    let mut races: BTreeMap<RowKey, Vec<&Row>> = BTreeMap::new();
    for row in view.file.rows.iter().filter(|row| races_as_baseline(row)) {
        let race = RowKey {
            contender: release(row).0.to_owned(),
            ..RowKey::of(row)
        };
        races.entry(race).or_default().push(row);
    }
    let mut steps: BTreeMap<Group, Vec<Speedup>> = BTreeMap::new();
    for rows in races.values_mut() {
        rows.sort_by_key(|row| order(release(row).1));
        // The linked one may race under both of its names.
        rows.dedup_by_key(|row| release(row).1.to_owned());
        for pair in rows.windows(2) {
            let (older, newer) = (release(pair[0]).1, release(pair[1]).1);
            if let Ok(speedup) = speedup_over(pair[0], pair[1], &RatioOptions::default()) {
                let row = pair[1];
                let (op, dtype, suite) = (&*row.op, &*row.dtype, &*row.workload.suite);
                let (library, place) = (release(row).0, order(older));
                let group = (library, op, dtype, suite, place, older, newer);
                steps.entry(group).or_default().push(speedup);
            }
        }
    }
    if steps.is_empty() {
        return String::new();
    }
    let mut text = "### Release by release\n\nTime of the older release over that of the newer, so above 1 the newer \
        is faster: geometric mean over the suite's workloads with 95 % confidence interval.\n\n"
        .to_owned();
    text += &header(&[
        "library",
        "older",
        "newer",
        "op",
        "dtype",
        "suite",
        "geomean :",
        "95 % interval :",
        "workloads :",
        "faster / same / slower / ambiguous",
    ]);
    for ((library, op, dtype, suite, _, older, newer), speedups) in steps {
        let of = |speedup: &Speedup| (speedup.ratio, speedup.low, speedup.high);
        let ratios: Vec<_> = speedups.iter().map(of).collect();
        let Some(mean) = geomean(&ratios) else {
            continue;
        };
        let count = |verdict| {
            let same = speedups.iter().filter(|each| each.verdict == verdict);
            same.count().to_string()
        };
        let counts = [
            Verdict::Faster,
            Verdict::Same,
            Verdict::Slower,
            Verdict::Ambiguous,
        ];
        let names = [library, older, newer, op, dtype, suite];
        let mut cells: Vec<String> = names.map(cell).to_vec();
        cells.extend([
            ratio_text(mean.ratio),
            interval_text(mean.low, mean.high),
            speedups.len().to_string(),
            counts.map(count).join(" / "),
        ]);
        text += &line(&cells);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_in_the_order_of_their_numbers() {
        let sorted = [
            "0.6",
            "0.6.9",
            "0.6.9.post1",
            "0.6.9.1",
            "0.6.10",
            "0.99999999999999999999999",
            "4.0.0.dev3",
            "4.0.0a12",
            "4.0.0b9",
            "4.0.0b36",
            "4.0.0rc1",
            "4.0.0",
        ];
        let mut releases = sorted;
        releases.reverse();
        releases.sort_by_key(|release| order(release));
        assert_eq!(releases, sorted);
        assert_eq!(order(""), [(Word::End, 0)]);
    }
}
