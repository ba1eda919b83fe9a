//! Whether the suite called the same contender the same. Without that, none of its verdicts counts.

use record::{count_text, interval_text, ratio_text, ResultFile, Row, RowKey};
use report_lib::odd_controls;

/// What is wrong with the controls of a finished suite, in a sentence; `files` are the results of
/// its benches.
pub fn complaint(files: &[ResultFile]) -> Option<String> {
    let unchecked: Vec<&str> = files
        .iter()
        .filter(|file| !record::controls(file).any(|row| row.speedup.is_some()))
        .map(|file| &*file.meta.program)
        .collect();
    if !unchecked.is_empty() {
        return Some(format!(
            "{} raced no contender against itself, so the protocol is unproven there; see why in \
             the rows named '(again)'",
            unchecked.join(", ")
        ));
    }
    let odd: Vec<&Row> = files.iter().flat_map(odd_controls).collect();
    if odd.is_empty() {
        return None;
    }
    let all: usize = files
        .iter()
        .map(|file| record::controls(file).count())
        .sum();
    let each: Vec<String> = odd.iter().map(|row| described(row)).collect();
    Some(format!(
        "the same contender twice is different in {} of {}: {}; do not publish this run: measure \
         again on a quieter machine",
        odd.len(),
        count_text(all, "race"),
        each.join("; ")
    ))
}

fn described(row: &Row) -> String {
    let key = RowKey::of(row);
    match &row.speedup {
        Some(speedup) => format!(
            "{key} {} {} {}",
            ratio_text(speedup.ratio),
            interval_text(speedup.low, speedup.high),
            speedup.verdict
        ),
        None => format!("{key} {}", row.status),
    }
}
