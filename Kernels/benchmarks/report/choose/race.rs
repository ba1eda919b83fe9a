//! The contenders of one workload, fastest first, and by how much the fastest leads.

use super::Shape;
use crate::View;
use record::{speedup_over, ContenderKind, Row, RowKey, Speedup};
use stats::{RatioOptions, Verdict};
use std::collections::BTreeMap;

/// Whoever takes longer than this times the fastest one's median is no near-tie, whatever the noise.
const NEAR: f64 = 1.5;

/// One contender's place in a race.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    pub row: &'a Row,
    pub median_us: f64,
    /// How much faster the winner is, from paired rounds; absent for the winner itself, for those far
    /// behind the runner-up, and where there are too few rounds.
    pub behind: Option<Speedup>,
}

impl Standing<'_> {
    pub fn name(&self) -> &str {
        &self.row.contender.name
    }
}

/// A workload on which at least one contender has a time.
#[derive(Debug, Clone)]
pub struct Race<'a> {
    pub op: &'a str,
    pub dtype: &'a str,
    pub shape: Shape,
    /// Fastest first; never empty.
    pub standings: Vec<Standing<'a>>,
}

/// All races of a view. References and controls do not compete.
pub fn races(view: &View) -> Vec<Race<'_>> {
    let mut by_workload: BTreeMap<RowKey, Vec<&Row>> = BTreeMap::new();
    let competes = |row: &&Row| {
        let kind = matches!(
            row.contender.kind,
            ContenderKind::Own | ContenderKind::Baseline
        );
        kind && row.time.is_some()
    };
    for row in view.file.rows.iter().filter(competes) {
        let key = RowKey {
            contender: String::new(),
            ..RowKey::of(row)
        };
        by_workload.entry(key).or_default().push(row);
    }
    let options = RatioOptions {
        margin: view.file.meta.protocol.margin,
        ..RatioOptions::default()
    };
    by_workload
        .into_values()
        .map(|rows| Race::of(&rows, &options))
        .collect()
}

impl<'a> Race<'a> {
    fn of(rows: &[&'a Row], options: &RatioOptions) -> Race<'a> {
        let standing = |row: &&'a Row| Standing {
            row,
            median_us: row.time.as_ref().map_or(f64::NAN, |time| time.median_us),
            behind: None,
        };
        let mut standings: Vec<Standing> = rows.iter().map(standing).collect();
        standings.sort_by(|left, right| left.median_us.total_cmp(&right.median_us));
        if let [first, second, ..] = &standings[..] {
            // Paired rounds are the better judge of two that are close.
            let lead = duel(second.row, first.row, options);
            if lead.is_some_and(|lead| lead.ratio < 1.0) {
                standings.swap(0, 1);
            }
        }
        let (winner, near_us) = (standings[0].row, NEAR * standings[0].median_us);
        for (place, standing) in standings.iter_mut().enumerate().skip(1) {
            if place == 1 || standing.median_us <= near_us {
                standing.behind = duel(standing.row, winner, options);
            }
        }
        Race {
            op: &winner.op,
            dtype: &winner.dtype,
            shape: Shape::of(&winner.workload.axes),
            standings,
        }
    }

    pub fn winner(&self) -> &Standing<'a> {
        &self.standings[0]
    }

    pub fn runner_up(&self) -> Option<&Standing<'a>> {
        self.standings.get(1)
    }

    /// Everybody who may be the fastest, or is as fast: the winner first.
    pub fn leaders(&self) -> impl Iterator<Item = &Standing<'a>> {
        let near = |standing: &&Standing| match &standing.behind {
            Some(behind) => behind.verdict != Verdict::Faster,
            None => false,
        };
        std::iter::once(&self.standings[0]).chain(self.standings[1..].iter().filter(near))
    }

    /// The most that a contender may be slower than the fastest, 0.01 for 1 %; none if it has no time.
    pub fn regret(&self, contender: &str) -> Option<f64> {
        let standing = self
            .standings
            .iter()
            .find(|standing| standing.name() == contender)?;
        if standing.name() == self.winner().name() {
            let doubt = self.runner_up().and_then(|second| second.behind.as_ref());
            return Some(doubt.map_or(0.0, |lead| (1.0 / lead.low - 1.0).max(0.0)));
        }
        let ratio = standing.median_us / self.winner().median_us;
        Some(standing.behind.as_ref().map_or(ratio, |behind| behind.high) - 1.0)
    }

    /// `dsv3/64x2112x7168`.
    pub fn workload(&self) -> String {
        let workload = &self.winner().row.workload;
        format!("{}/{}", workload.suite, workload.name)
    }
}

/// How much faster `row` is than `other`: as the run recorded it, or from the samples.
fn duel(other: &Row, row: &Row, options: &RatioOptions) -> Option<Speedup> {
    let recorded = row.against.iter().chain(&row.speedup);
    if let Some(found) = recorded
        .into_iter()
        .find(|speedup| speedup.baseline == other.contender.name)
    {
        return Some(found.clone());
    }
    speedup_over(other, row, options).ok()
}
