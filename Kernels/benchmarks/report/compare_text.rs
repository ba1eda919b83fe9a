//! A comparison as Markdown that is also readable in a terminal.

use crate::compare::{Change, Comparison, Method};
use record::markdown_table::{cell, header, line};
use record::{count_text, interval_text, percent_text, ratio_text, time_us_text, RowKey};
use stats::{Verdict, SPREAD_BETWEEN_CARDS};

/// Unremarkable rows are counted, not listed.
pub fn to_text(comparison: &Comparison) -> String {
    let count = |verdict| comparison.count(verdict);
    let mut text = format!(
        "## Comparison: {} slower, {} faster, {} same, {} ambiguous, {} broken\n\n",
        count(Verdict::Slower),
        count(Verdict::Faster),
        count(Verdict::Same),
        count(Verdict::Ambiguous),
        comparison.broken.len()
    );
    text += &format!(
        "New time over old time, so above 1 is slower; a slow-down of {} must be detected. The \
        intervals hold for all {} at once (99 %), with a run-to-run spread of {} (paired) and {} \
        (direct).\n\n",
        percent_text(comparison.threshold),
        count_text(comparison.changes.len(), "row"),
        percent_text(comparison.spread_paired),
        percent_text(comparison.spread_direct),
    );
    let agreement = comparison.agreement;
    if agreement.all > 0 {
        text += &format!(
            "Of {} of unchanged contenders, {} agree within the two runs' own 95 % intervals, and {} if these \
            allow for another card ({} standard deviation).\n\n",
            count_text(agreement.all, "speed-up"),
            agreement.here,
            agreement.elsewhere,
            percent_text(SPREAD_BETWEEN_CARDS),
        );
    }
    if let Some(drift) = comparison.drift {
        text += &format!(
            "Unchanged baselines ran at {} times their old time; direct changes are corrected for that.\n\n",
            ratio_text(drift)
        );
    }
    for (title, verdict) in [
        ("Slower", Verdict::Slower),
        ("Faster", Verdict::Faster),
        ("Ambiguous", Verdict::Ambiguous),
    ] {
        let changes = comparison.changes.iter();
        let of: Vec<&Change> = changes.filter(|change| change.verdict == verdict).collect();
        if !of.is_empty() {
            text += &format!("### {title}\n\n{}\n", changes_table(&of));
        }
    }
    text += &broken(comparison);
    text += &keys("Mended", &comparison.mended);
    text += &keys("Only in base", &comparison.missing);
    text += &keys("Only in new", &comparison.added);
    if !comparison.environment.is_empty() {
        text += "### What else differs\n\n";
        for difference in &comparison.environment {
            text += &format!("* {}\n", cell(difference));
        }
        text += "\n";
    }
    text
}

fn changes_table(changes: &[&Change]) -> String {
    let mut text = header(&[
        "row",
        "base us :",
        "new us :",
        "new / base :",
        "interval :",
        "by",
        "notes",
    ]);
    for change in changes {
        let method = match &change.method {
            Method::Paired(baseline) => format!("speed-ups over {}", cell(baseline)),
            Method::Direct => "times".to_owned(),
        };
        text += &line(&[
            cell(&change.key.to_string()),
            time_us_text(change.base_us),
            time_us_text(change.new_us),
            ratio_text(change.ratio),
            interval_text(change.low, change.high),
            method,
            cell(&change.notes.join("; ")),
        ]);
    }
    text
}

fn broken(comparison: &Comparison) -> String {
    if comparison.broken.is_empty() {
        return String::new();
    }
    let mut text = "### Broken\n\n".to_owned() + &header(&["row", "now"]);
    for (key, reason) in &comparison.broken {
        text += &line(&[cell(&key.to_string()), cell(reason)]);
    }
    text + "\n"
}

/// Lists the first few of many.
fn keys(title: &str, keys: &[RowKey]) -> String {
    const SHOWN: usize = 20;
    if keys.is_empty() {
        return String::new();
    }
    let mut text = format!("### {title}: {}\n\n", count_text(keys.len(), "row"));
    for key in keys.iter().take(SHOWN) {
        text += &format!("* {}\n", cell(&key.to_string()));
    }
    if keys.len() > SHOWN {
        text += &format!("* and {} more\n", keys.len() - SHOWN);
    }
    text + "\n"
}
