//! Speed-ups of one contender over one baseline, or over the best, across the workloads of a suite.

use crate::{ContenderKind, ResultFile, Row, Speedup, Status};
use stats::{weighted_geomean, Geomean, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The workloads of a suite, summarised for one contender.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub op: String,
    pub dtype: String,
    pub suite: String,
    pub contender: String,
    pub baseline: String,
    /// Across the workloads on which both have a time.
    pub geomean: Option<Geomean>,
    pub verdicts: BTreeMap<Verdict, usize>,
    /// Rows without a speed-up, by status; `ok` if only the baseline has no time.
    pub unpaired: BTreeMap<Status, usize>,
    /// Workload with the lowest ratio, and that ratio.
    pub worst: Option<(String, f64)>,
}

impl Group {
    pub fn verdict_count(&self, verdict: Verdict) -> usize {
        self.verdicts.get(&verdict).copied().unwrap_or(0)
    }

    /// All rows of the contender in the suite, measured or not.
    pub fn workloads(&self) -> usize {
        self.verdicts.values().sum::<usize>() + self.unpaired.values().sum::<usize>()
    }
}

type Place<'a> = (&'a str, &'a str, &'a str, &'a str);

fn place(row: &Row) -> Place<'_> {
    (
        &row.op,
        &row.dtype,
        &row.workload.suite,
        &row.contender.name,
    )
}

/// What a group compares with if not one baseline: the fastest one of each workload.
pub const BEST: &str = "the best other";

/// All groups with at least one speed-up over a baseline, in order of first appearance.
pub fn groups(file: &ResultFile) -> Vec<Group> {
    grouped(file, |row| {
        let speedup = row.speedup.as_ref()?;
        Some((speedup, &speedup.baseline))
    })
}

/// The same for our contenders against the fastest baseline of each workload.
pub fn best_groups(file: &ResultFile) -> Vec<Group> {
    grouped(file, |row| {
        Some((&row.against_best.as_ref()?.speedup, BEST))
    })
}

/// Rows of contenders that raced against themselves; their speed-ups should be 1.
pub fn controls(file: &ResultFile) -> impl Iterator<Item = &Row> {
    let is_control = |row: &&Row| row.contender.kind == ContenderKind::Control;
    file.rows.iter().filter(is_control)
}

/// Rows that lost, worst first: ours to the best other, others to their baseline.
pub fn losses(file: &ResultFile) -> Vec<(&Row, &Speedup)> {
    let compared = file.rows.iter();
    let compared = compared.filter_map(|row| Some((row, row.headline()?)));
    let mut lost: Vec<(&Row, &Speedup)> = compared
        .filter(|(_, speedup)| speedup.verdict == Verdict::Slower)
        .collect();
    lost.sort_by(|(_, left), (_, right)| left.ratio.total_cmp(&right.ratio));
    lost
}

/// A row's speed-up and what to call the other side.
type Ratio = fn(&Row) -> Option<(&Speedup, &str)>;

fn grouped(file: &ResultFile, ratio: Ratio) -> Vec<Group> {
    let mut rows_at: BTreeMap<Place, Vec<&Row>> = BTreeMap::new();
    let mut keys: Vec<(Place, &str)> = Vec::new();
    let mut seen = BTreeSet::new();
    let competes = |row: &&Row| row.contender.kind != ContenderKind::Control;
    for row in file.rows.iter().filter(competes) {
        rows_at.entry(place(row)).or_default().push(row);
        if let Some((_, other)) = ratio(row) {
            let key = (place(row), other);
            if seen.insert(key) {
                keys.push(key);
            }
        }
    }
    keys.into_iter()
        .map(|(place, other)| group(place, other, &rows_at[&place], ratio))
        .collect()
}

fn group(place: Place, baseline: &str, rows: &[&Row], ratio: Ratio) -> Group {
    let (op, dtype, suite, contender) = place;
    let mut verdicts = BTreeMap::new();
    let mut unpaired = BTreeMap::new();
    let (mut ratios, mut weights) = (Vec::new(), Vec::new());
    let mut worst: Option<(String, f64)> = None;
    for row in rows {
        let Some((speedup, other)) = ratio(row) else {
            *unpaired.entry(row.status).or_insert(0) += 1;
            continue;
        };
        if other != baseline {
            continue;
        }
        *verdicts.entry(speedup.verdict).or_insert(0) += 1;
        ratios.push((speedup.ratio, speedup.low, speedup.high));
        weights.push(row.workload.weight.unwrap_or(1.0));
        if worst
            .as_ref()
            .is_none_or(|(_, ratio)| speedup.ratio < *ratio)
        {
            worst = Some((row.workload.name.clone(), speedup.ratio));
        }
    }
    Group {
        op: op.to_owned(),
        dtype: dtype.to_owned(),
        suite: suite.to_owned(),
        contender: contender.to_owned(),
        baseline: baseline.to_owned(),
        geomean: weighted_geomean(&ratios, &weights),
        verdicts,
        unpaired,
        worst,
    }
}

/// The rows grouped by workload, workloads in order of their first row.
pub(crate) fn by_workload(file: &ResultFile) -> Vec<&Row> {
    let key = |row: &Row| {
        let workload = &row.workload;
        (
            row.op.clone(),
            row.dtype.clone(),
            workload.suite.clone(),
            workload.name.clone(),
        )
    };
    let mut first_at = BTreeMap::new();
    for row in &file.rows {
        let next = first_at.len();
        first_at.entry(key(row)).or_insert(next);
    }
    let mut rows: Vec<&Row> = file.rows.iter().collect();
    rows.sort_by_cached_key(|row| first_at[&key(row)]);
    rows
}

/// Row warnings that are not warnings of the whole run, each text once with its rows.
pub(crate) fn row_warnings(file: &ResultFile) -> Vec<(&str, Vec<&Row>)> {
    let mut found: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &file.rows {
        for text in row
            .warnings
            .iter()
            .filter(|text| !file.meta.warnings.contains(text))
        {
            match found.iter_mut().find(|(known, _)| known == text) {
                Some((_, rows)) => rows.push(row),
                None => found.push((text, vec![row])),
            }
        }
    }
    found
}

/// Whether other rows of the workload are compared with this one.
pub(crate) struct Baselines<'a>(BTreeSet<(&'a str, &'a str, &'a str, &'a str, &'a str)>);

impl<'a> Baselines<'a> {
    pub(crate) fn of(file: &'a ResultFile) -> Self {
        let key = |row: &'a Row| {
            let baseline = row.speedup.as_ref()?.baseline.as_str();
            let workload = &row.workload;
            Some((
                &*row.op,
                &*row.dtype,
                &*workload.suite,
                &*workload.name,
                baseline,
            ))
        };
        Baselines(file.rows.iter().filter_map(key).collect())
    }

    pub(crate) fn contains(&self, row: &'a Row) -> bool {
        let workload = &row.workload;
        let name = &*row.contender.name;
        self.0.contains(&(
            &*row.op,
            &*row.dtype,
            &*workload.suite,
            &*workload.name,
            name,
        ))
    }

    /// The text of the verdict column.
    pub(crate) fn verdict_text(&self, row: &'a Row) -> String {
        let verdict = match (&row.speedup, row.status) {
            (_, status) if status != Status::Ok => return status.to_string(),
            (Some(speedup), _) => speedup.verdict.to_string(),
            (None, _) if self.contains(row) => "baseline".to_owned(),
            (None, _) => "ok".to_owned(),
        };
        match row.verified {
            true => verdict,
            false => format!("{verdict} (unverified)"),
        }
    }
}
