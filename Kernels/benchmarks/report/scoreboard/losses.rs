//! Where ours loses, worst first, and why, as far as the record tells.

use super::our_name;
use crate::View;
use record::{percent_text, ratio_text, time_us_text, ContenderKind, Row, RowKey, Speedup};
use serde_json::Value;
use stats::Verdict;
use std::collections::HashMap;

/// Rows of ours that are slower than the best other beyond doubt, or have no time where another has one.
pub struct Loss<'a> {
    pub row: &'a Row,
    /// None if ours has no time.
    pub speedup: Option<&'a Speedup>,
    /// Who is faster.
    pub other: &'a Row,
    pub reason: String,
}

/// Below this share of the roof, both sides wait for latencies rather than for the machine.
const LATENCY_SHARE: f64 = 0.1;
/// Ratios closer to 1 explain nothing.
const EXPLAINED: f64 = 0.995;
/// What contenders say of their choice, most telling first.
const CHOICES: [&str; 5] = ["kernel", "config", "tile", "plan", "split_k"];

pub fn losses(view: &View) -> Vec<Loss<'_>> {
    let mut fastest: HashMap<RowKey, &Row> = HashMap::new();
    let mut rows: HashMap<RowKey, &Row> = HashMap::new();
    let timed = view.file.rows.iter().filter(|row| row.time.is_some());
    for row in timed.filter(|row| row.contender.kind == ContenderKind::Baseline) {
        let best = fastest.entry(race(row)).or_insert(row);
        if median_us(row) < median_us(best) {
            *best = row;
        }
        rows.insert(RowKey::of(row), row);
    }
    let Some(name) = our_name(view) else {
        return Vec::new();
    };
    let ours = view
        .file
        .rows
        .iter()
        .filter(|row| row.contender.name == name);
    let mut lost: Vec<Loss> = ours
        .filter_map(|row| {
            let Some(best) = &row.against_best else {
                let other = fastest.get(&race(row)).copied()?;
                let reason = format!(
                    "{}: {}",
                    row.status,
                    row.reason.as_deref().unwrap_or("no reason given")
                );
                return row.time.is_none().then_some(Loss {
                    row,
                    speedup: None,
                    other,
                    reason,
                });
            };
            let key = RowKey {
                contender: best.speedup.baseline.clone(),
                ..RowKey::of(row)
            };
            let other = rows.get(&key).copied()?;
            let speedup = &best.speedup;
            (speedup.verdict == Verdict::Slower).then(|| Loss {
                row,
                speedup: Some(speedup),
                other,
                reason: reason(row, speedup, other),
            })
        })
        .collect();
    let rank = |loss: &Loss| loss.speedup.map_or(0.0, |speedup| speedup.ratio);
    lost.sort_by(|left, right| rank(left).total_cmp(&rank(right)));
    lost
}

fn race(row: &Row) -> RowKey {
    RowKey {
        contender: String::new(),
        ..RowKey::of(row)
    }
}

pub(super) fn median_us(row: &Row) -> f64 {
    row.time.as_ref().map_or(f64::NAN, |time| time.median_us)
}

/// Facts that tell the two sides apart, most telling first.
fn reason(row: &Row, speedup: &Speedup, other: &Row) -> String {
    let mut reasons = Vec::new();
    let clock = |row: &Row| row.clocks.as_ref()?.median_mhz;
    let at_equal_clock = speedup
        .at_equal_clock
        .or_else(|| Some(speedup.ratio * clock(other)? / clock(row)?));
    if let Some(ratio) = at_equal_clock.filter(|ratio| *ratio >= EXPLAINED) {
        reasons.push(format!(
            "lower clock: {} at equal clocks",
            ratio_text(ratio)
        ));
    }
    if let Some(ratio) = speedup.of_kernels.filter(|ratio| *ratio >= EXPLAINED) {
        reasons.push(format!(
            "time between kernels: {} without it",
            ratio_text(ratio)
        ));
    }
    if let (Some(ours), Some(theirs)) = (row.metrics.roof_share, other.metrics.roof_share) {
        let both = format!("{} against {}", percent_text(ours), percent_text(theirs));
        reasons.push(match theirs < LATENCY_SHARE {
            true => format!(
                "latency: {} against {} us, {both} of the roof",
                time_us_text(median_us(row)),
                time_us_text(median_us(other))
            ),
            false => format!(
                "{both} of {}",
                row.metrics.roof.as_deref().unwrap_or("the roof")
            ),
        });
    }
    let choices = (choice(row), choice(other));
    if let (Some(ours), Some(theirs)) = &choices {
        if ours != theirs {
            reasons.push(format!("ours {ours}, theirs {theirs}"));
        }
    }
    if reasons.is_empty() {
        reasons.push("the record does not tell".to_owned());
    }
    reasons.join("; ")
}

/// What a contender chose for the workload.
fn choice(row: &Row) -> Option<String> {
    let facts: Vec<String> = CHOICES
        .iter()
        .filter_map(|name| {
            let text = match row.facts.get(*name)? {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let short: String = text.chars().take(60).collect();
            Some(format!("{name} {short}"))
        })
        .take(2)
        .collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}
