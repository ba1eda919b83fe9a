//! How far to trust a run: what it made of no difference, what it checked, and the state of the card.

use crate::{odd_controls, View};
use record::{count_text, significant, Gpu, Meta, Row};
use stats::Verdict;
use std::collections::BTreeSet;

/// Whether a fact speaks for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Good,
    Doubtful,
    /// The file does not say.
    Unknown,
    /// Neither.
    Plain,
}

/// One fact of the strip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub name: &'static str,
    pub text: String,
    pub trust: Trust,
}

const NOT_RECORDED: &str = "not recorded";

impl Fact {
    fn new(name: &'static str, found: Option<(String, Trust)>) -> Fact {
        let (text, trust) = found.unwrap_or((NOT_RECORDED.to_owned(), Trust::Unknown));
        Fact { name, text, trust }
    }
}

pub fn trust(view: &View) -> Vec<Fact> {
    vec![
        Fact::new("A/A controls", controls(view)),
        Fact::new("outputs", outputs(&view.file.rows)),
        Fact::new("cards", cards(&view.metas)),
        Fact::new("clocks", clocks(view)),
        Fact::new("power", power(view)),
        Fact::new("measured", Some(dates(view))),
        Fact::new("build", build(&view.metas)),
    ]
}

/// The same code twice should be the same.
fn controls(view: &View) -> Option<(String, Trust)> {
    let all: Vec<&Row> = record::controls(&view.file).collect();
    if all.is_empty() {
        return None;
    }
    let verdicts = all.iter().filter_map(|row| row.speedup.as_ref());
    let same = verdicts
        .filter(|speedup| speedup.verdict == Verdict::Same)
        .count();
    let odd = odd_controls(&view.file).len();
    let text = format!("{same} of {} the same, {odd} different", all.len());
    Some((
        text,
        if odd == 0 {
            Trust::Good
        } else {
            Trust::Doubtful
        },
    ))
}

fn outputs(rows: &[Row]) -> Option<(String, Trust)> {
    let timed: Vec<&Row> = rows.iter().filter(|row| row.time.is_some()).collect();
    if timed.is_empty() {
        return None;
    }
    let verified = timed.iter().filter(|row| row.verified).count();
    let rounds = match timed.iter().any(|row| row.checked_rounds.is_some()) {
        true => {
            let rounds: usize = timed.iter().filter_map(|row| row.checked_rounds).sum();
            format!("{} checked again", count_text(rounds, "timed round"))
        }
        false => format!("checked rounds {NOT_RECORDED}"),
    };
    let failed = rows.iter().filter(|row| row.status.is_failure()).count();
    let failures = match failed {
        0 => String::new(),
        _ => format!(", {} failed", count_text(failed, "row")),
    };
    let text = format!(
        "{verified} of {} timed rows verified, {rounds}{failures}",
        timed.len()
    );
    let all = verified == timed.len() && failed == 0;
    Some((text, if all { Trust::Good } else { Trust::Doubtful }))
}

fn gpus(metas: &[Meta]) -> impl Iterator<Item = &Gpu> {
    metas.iter().filter_map(|meta| meta.gpu.as_ref())
}

fn cards(metas: &[Meta]) -> Option<(String, Trust)> {
    let names: BTreeSet<&str> = metas.iter().map(|meta| &*meta.device.name).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let ids: BTreeSet<&str> = gpus(metas).filter_map(|gpu| gpu.uuid.as_deref()).collect();
    let id = match ids.len() {
        0 if gpus(metas).next().is_none() => String::new(),
        0 => format!(", serial {NOT_RECORDED}"),
        1 => format!(
            ", {}",
            ids.iter()
                .flat_map(|id| id.chars().take(12))
                .collect::<String>()
        ),
        count => format!(", {count} of them"),
    };
    Some((names + &id, Trust::Plain))
}

/// Lowest and highest of what rows saw.
fn range(view: &View, of: fn(&Row) -> Option<f64>, unit: &str) -> Option<String> {
    let seen = view
        .file
        .rows
        .iter()
        .filter_map(of)
        .filter(|value| value.is_finite());
    let (low, high) = seen.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low <= high).then(|| format!("{} to {} {unit}", significant(low, 3), significant(high, 3)))
}

fn clocks(view: &View) -> Option<(String, Trust)> {
    let locked: BTreeSet<bool> = gpus(&view.metas)
        .filter_map(|gpu| gpu.clocks_locked)
        .collect();
    let seen = range(view, |row| row.clocks.as_ref()?.median_mhz, "MHz");
    if locked.is_empty() && seen.is_none() {
        return None;
    }
    let lock = match (locked.contains(&true), locked.contains(&false)) {
        (true, false) => "locked",
        (false, true) => "not locked",
        (true, true) => "locked in some runs",
        (false, false) => "lock not recorded",
    };
    let seen = seen.unwrap_or_else(|| format!("rates {NOT_RECORDED}"));
    let trust = if lock == "locked" {
        Trust::Good
    } else {
        Trust::Doubtful
    };
    Some((format!("{lock}, {seen}"), trust))
}

fn power(view: &View) -> Option<(String, Trust)> {
    let limit = gpus(&view.metas)
        .filter_map(|gpu| gpu.power_limit_w)
        .reduce(f64::max);
    let seen = range(view, |row| row.clocks.as_ref()?.power_w, "W");
    if limit.is_none() && seen.is_none() {
        return None;
    }
    let capped = |row: &&Row| {
        row.clocks
            .as_ref()
            .is_some_and(|clocks| !clocks.throttle_reasons.is_empty())
    };
    let capped = view.file.rows.iter().filter(capped).count();
    let limit = limit.map_or(format!("limit {NOT_RECORDED}"), |watts| {
        format!("limit {watts} W")
    });
    let mut text = format!(
        "{}, {limit}",
        seen.unwrap_or_else(|| NOT_RECORDED.to_owned())
    );
    if capped > 0 {
        text += &format!(", {} throttled", count_text(capped, "row"));
    }
    Some((
        text,
        if capped == 0 {
            Trust::Plain
        } else {
            Trust::Doubtful
        },
    ))
}

/// `2026-11-15 22:32` of an RFC 3339 time.
fn minute(time: &str) -> String {
    time.chars()
        .take(16)
        .map(|character| if character == 'T' { ' ' } else { character })
        .collect()
}

fn dates(view: &View) -> (String, Trust) {
    let meta = &view.file.meta;
    let end = match &meta.ended_at {
        Some(end) if end.get(..10) == meta.started_at.get(..10) => {
            minute(end).chars().skip(11).collect()
        }
        Some(end) => minute(end),
        None => "an interruption".to_owned(),
    };
    let partial = if meta.complete { "" } else { ", partial" };
    let trust = if meta.complete {
        Trust::Plain
    } else {
        Trust::Doubtful
    };
    (
        format!("{} to {end} UTC{partial}", minute(&meta.started_at)),
        trust,
    )
}

fn build(metas: &[Meta]) -> Option<(String, Trust)> {
    let of = |meta: &Meta| {
        let git = meta.git.as_ref()?;
        let short: String = git.commit.chars().take(10).collect();
        Some(short + if git.dirty { " with changes" } else { "" })
    };
    let commits: BTreeSet<String> = metas.iter().filter_map(of).collect();
    let drivers: BTreeSet<&str> = metas
        .iter()
        .filter_map(|meta| meta.driver.as_deref())
        .collect();
    let commits = match commits.is_empty() {
        true => format!("commit {NOT_RECORDED}"),
        false => format!(
            "commit {}",
            commits.into_iter().collect::<Vec<_>>().join(", ")
        ),
    };
    let drivers = match drivers.is_empty() {
        true => String::new(),
        false => format!(
            ", driver {}",
            drivers.into_iter().collect::<Vec<_>>().join(", ")
        ),
    };
    Some((commits + &drivers, Trust::Plain))
}
