//! Who wins, and by how much: a line per operation and type, a column per contender.
//!
//! A score is the geometric mean, over the workloads on which a contender has a time, of the other side's time over
//! its own, so above 1 the contender is faster. The other side is the best other of each workload, or one contender.

mod losses;
mod markdown;
mod race;
mod terminal;
mod trust;

use crate::View;
use race::{races, Duel, Race};
use record::{count_text, interval_text, ratio_text, ContenderKind, Row, Status};
use stats::{geomean, verdict, Geomean, Verdict};
use std::collections::{BTreeMap, BTreeSet};

pub use losses::{losses, Loss};
pub use markdown::scoreboard_markdown;
pub use terminal::scoreboard_text;
pub use trust::{trust, Fact, Trust};

/// Lines that the same contenders entered, so that they share their columns.
pub struct Block {
    /// Ours first, then by name; those with a time somewhere.
    pub contenders: Vec<String>,
    /// Contenders without any time here, and what became of them.
    pub absent: Vec<(String, Status)>,
    pub lines: Vec<Line>,
    /// Operations in which nobody has a rival.
    pub alone: Vec<Line>,
}

/// One operation and type.
pub struct Line {
    pub op: String,
    pub dtype: String,
    pub workloads: usize,
    /// Per contender, against the best other.
    pub best: Vec<Option<Score>>,
    /// Per baseline, per contender. A contender has no score against itself.
    pub against: Vec<Vec<Option<Score>>>,
}

/// One contender on the workloads of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    pub mean: Geomean,
    pub verdict: Verdict,
    pub won: usize,
    pub even: usize,
    pub lost: usize,
}

impl Score {
    /// Who wins by how much, in words that follow a contender's name.
    fn sentence(&self) -> String {
        let Self {
            mean,
            won,
            even,
            lost,
            ..
        } = self;
        format!(
            "{} {} against the best other on {}: {won} won, {even} even, {lost} lost",
            ratio_text(mean.ratio),
            interval_text(mean.low, mean.high),
            count_text(mean.count, "workload"),
        )
    }

    fn of<'a>(duels: impl Iterator<Item = &'a Duel>, margin: f64) -> Option<Score> {
        let duels: Vec<&Duel> = duels.collect();
        let ratios: Vec<(f64, f64, f64)> = duels
            .iter()
            .map(|duel| (duel.ratio, duel.low, duel.high))
            .collect();
        let mean = geomean(&ratios)?;
        let count = |verdict| duels.iter().filter(|duel| duel.verdict == verdict).count();
        Some(Score {
            verdict: verdict(mean.low, mean.high, margin),
            mean,
            won: count(Verdict::Faster),
            even: count(Verdict::Same) + count(Verdict::Ambiguous),
            lost: count(Verdict::Slower),
        })
    }

    /// `57/14/1`: won, even, lost.
    pub fn counts(&self) -> String {
        format!("{}/{}/{}", self.won, self.even, self.lost)
    }

    /// Sign and size of the difference, 0 for even up to 3: from 5 % and 20 % on it is larger.
    pub fn shade(&self) -> (Verdict, u8) {
        let distance = self.mean.ratio.ln().abs();
        match self.verdict {
            Verdict::Same | Verdict::Ambiguous => (Verdict::Same, 0),
            sided if distance < 1.05f64.ln() => (sided, 1),
            sided if distance < 1.2f64.ln() => (sided, 2),
            sided => (sided, 3),
        }
    }
}

impl Block {
    /// What the columns do not show: contenders without a time, operations without a rival.
    pub fn notes(&self) -> Vec<String> {
        let absent = self.absent.iter();
        let absent: Vec<String> = absent
            .map(|(name, status)| format!("{name} ({status})"))
            .collect();
        let alone = self.alone.iter();
        let alone: Vec<String> = alone
            .map(|line| format!("{} {}", line.op, line.dtype))
            .collect();
        let notes = [("Without a time", absent), ("Without a rival", alone)];
        let told = notes.into_iter().filter(|(_, names)| !names.is_empty());
        told.map(|(title, names)| format!("{title}: {}.", names.join(", ")))
            .collect()
    }
}

/// The whole scoreboard of a view.
pub struct Scoreboard {
    pub blocks: Vec<Block>,
    /// Ours over everything, with its name; none if the file has none of ours with a rival.
    pub ours: Option<(String, Score)>,
}

pub fn scoreboard(view: &View) -> Scoreboard {
    let margin = view.file.meta.protocol.margin;
    let races = races(&view.file);
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut lines: Vec<Vec<&Race>> = Vec::new();
    for race in &races {
        let place = *places.entry((race.op, race.dtype)).or_insert(lines.len());
        if place == lines.len() {
            lines.push(Vec::new());
        }
        lines[place].push(race);
    }
    let mut entered: Vec<(BTreeSet<&str>, Vec<Vec<&Race>>)> = Vec::new();
    for races in lines {
        let rows = races.iter().flat_map(|race| &race.rows);
        let names: BTreeSet<&str> = rows.map(|row| &*row.contender.name).collect();
        match entered.iter_mut().find(|(known, _)| *known == names) {
            Some((_, lines)) => lines.push(races),
            None => entered.push((names, vec![races])),
        }
    }
    let blocks = entered.into_iter().map(|(_, lines)| block(&lines, margin));
    let ours = our_name(view).and_then(|name| {
        let duels = races.iter().filter_map(|race| race.best_of(name));
        Some((name.to_owned(), Score::of(duels, margin)?))
    });
    Scoreboard {
        blocks: blocks.collect(),
        ours,
    }
}

/// The first contender of ours, which others of ours (a portable one, say) only accompany.
fn our_name(view: &View) -> Option<&str> {
    let first = view.file.rows.iter().find(|row| is_own(row))?;
    Some(&first.contender.name)
}

fn is_own(row: &Row) -> bool {
    row.contender.kind == ContenderKind::Own
}

fn block(lines: &[Vec<&Race>], margin: f64) -> Block {
    let (contenders, absent) = contestants(&lines.concat());
    let lines = lines.iter().map(|races| line(races, &contenders, margin));
    let (lines, alone) = lines.partition(|line| line.best.iter().any(Option::is_some));
    Block {
        contenders,
        absent,
        lines,
        alone,
    }
}

/// Contenders with a time, ours first, and those without one.
fn contestants(races: &[&Race]) -> (Vec<String>, Vec<(String, Status)>) {
    let mut found: BTreeMap<(bool, &str), (bool, Status)> = BTreeMap::new();
    for row in races.iter().flat_map(|race| &race.rows) {
        let timed = row.time.is_some();
        let entry = found
            .entry((!is_own(row), &row.contender.name))
            .or_insert((timed, row.status));
        entry.0 |= timed;
    }
    let named = |timed: bool| {
        let of = found.iter().filter(move |(_, (has, _))| *has == timed);
        of.map(|((_, name), (_, status))| ((*name).to_owned(), *status))
    };
    (
        named(true).map(|(name, _)| name).collect(),
        named(false).collect(),
    )
}

fn line(races: &[&Race], contenders: &[String], margin: f64) -> Line {
    let best = contenders
        .iter()
        .map(|name| Score::of(races.iter().filter_map(|race| race.best_of(name)), margin));
    let against = contenders.iter().map(|baseline| {
        let score = |name: &String| {
            let duels: Vec<Duel> = races
                .iter()
                .filter_map(|race| race.duel(name, baseline))
                .collect();
            Score::of(duels.iter(), margin)
        };
        contenders.iter().map(score).collect()
    });
    Line {
        op: races[0].op.to_owned(),
        dtype: races[0].dtype.to_owned(),
        workloads: races.len(),
        best: best.collect(),
        against: against.collect(),
    }
}
