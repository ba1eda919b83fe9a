//! A dispatch table: regions of shapes, each with one contender that leads on every measured shape in it.
//!
//! The sizes of an operation's shapes are split like a decision tree until one contender is left for each part.
//! Nothing beyond the measured sizes is in the table.

use super::{races, Race};
use crate::{ReportingError, View};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub const TABLE_VERSION: u32 = 1;

/// A region of shapes and what to use there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    pub op: String,
    pub dtype: String,
    pub exact: BTreeMap<String, String>,
    /// Whole numbers, both ends included.
    pub sizes: BTreeMap<String, [u64; 2]>,
    pub contender: String,
    /// At most this much slower than the fastest on the region's measured shapes, 0.01 for 1 %.
    pub slower_by: f64,
    /// Measured shapes in the region.
    pub shapes: usize,
    /// False if races of one and the same shape had different winners.
    pub agreed: bool,
}

/// The rules of one device.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    pub table: u32,
    pub device: String,
    pub rules: Vec<Rule>,
}

/// What the shapes of one tree share: operation, type, exact axes, and which sizes they have.
type Alike<'a> = (
    &'a str,
    &'a str,
    &'a BTreeMap<String, String>,
    Vec<&'a String>,
);

pub fn table(views: &[View], op: Option<&str>) -> Result<Table, ReportingError> {
    let devices: BTreeSet<&str> = views
        .iter()
        .map(|view| view.file.meta.device.name.as_str())
        .collect();
    let [device] = devices.iter().copied().collect::<Vec<_>>()[..] else {
        let devices: Vec<&str> = devices.into_iter().collect();
        return Err(ReportingError::Usage(format!(
            "a table is for one device, and the files are of {}: {}; give those of one",
            devices.len(),
            devices.join(", ")
        )));
    };
    let mut rules = Vec::new();
    let mut owners: BTreeMap<(String, String), &str> = BTreeMap::new();
    for view in views {
        let all = races(view);
        let mut groups: BTreeMap<Alike, Vec<&Race>> = BTreeMap::new();
        for race in all.iter().filter(|race| op.is_none_or(|op| op == race.op)) {
            let key = (
                race.op,
                race.dtype,
                &race.shape.exact,
                race.shape.sizes.keys().collect(),
            );
            groups.entry(key).or_default().push(race);
        }
        for ((op, dtype, exact, _), races) in groups {
            let owner = owners
                .entry((op.to_owned(), dtype.to_owned()))
                .or_insert(&view.title);
            if *owner != view.title {
                return Err(ReportingError::Usage(format!(
                    "{op} {dtype} was measured by {owner} and by {}: give the files of one of them",
                    view.title
                )));
            }
            let whole = races[0].shape.sizes.keys().map(|axis| {
                let sizes = || races.iter().map(|race| whole_size(race, axis));
                let ends = [sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)];
                (axis.clone(), ends)
            });
            let start = Rule {
                op: op.to_owned(),
                dtype: dtype.to_owned(),
                exact: exact.clone(),
                sizes: whole.collect(),
                contender: String::new(),
                slower_by: 0.0,
                shapes: 0,
                agreed: true,
            };
            split(start, &races, &mut rules);
        }
    }
    if rules.is_empty() {
        return Err(ReportingError::Usage(match op {
            Some(op) => format!("'{op}' has no time in these files, so there is no table"),
            None => "no row has a time, so there is no table".to_owned(),
        }));
    }
    Ok(Table {
        table: TABLE_VERSION,
        device: device.to_owned(),
        rules,
    })
}

fn whole_size(race: &Race, axis: &str) -> u64 {
    race.shape.sizes[axis] as u64
}

/// Adds the region, or its parts, to the rules.
fn split(region: Rule, races: &[&Race], rules: &mut Vec<Rule>) {
    let most = races
        .iter()
        .fold(BTreeMap::new(), count)
        .into_values()
        .max()
        .unwrap_or(0);
    let cut = if most == races.len() {
        None
    } else {
        best_cut(&region, races)
    };
    let Some((axis, at)) = cut else {
        return rules.extend(settled(region, races));
    };
    let (below, above): (Vec<&Race>, Vec<&Race>) = races
        .iter()
        .copied()
        .partition(|race| whole_size(race, &axis) <= at);
    let part = |ends: [u64; 2]| {
        let mut part = region.clone();
        part.sizes.insert(axis.clone(), ends);
        part
    };
    let [low, high] = region.sizes[&axis];
    split(part([low, at]), &below, rules);
    split(part([at + 1, high]), &above, rules);
}

/// Adds one to each contender that leads in the race.
fn count<'a>(mut counts: BTreeMap<&'a str, usize>, race: &&'a Race) -> BTreeMap<&'a str, usize> {
    for leader in race.leaders() {
        *counts.entry(leader.name()).or_default() += 1;
    }
    counts
}

/// The axis and the last size below the cut after which the fewest races are lost by the best contender of either
/// side; halfway between two measured sizes, in logarithms.
fn best_cut(region: &Rule, races: &[&Race]) -> Option<(String, u64)> {
    let mut best: Option<(usize, String, u64)> = None;
    for axis in region.sizes.keys() {
        let mut sorted = races.to_vec();
        sorted.sort_by_key(|race| whole_size(race, axis));
        let counts = |races: &mut dyn Iterator<Item = &&Race>| {
            let mut so_far = BTreeMap::new();
            let led: Vec<usize> = races
                .map(|race| {
                    for leader in race.leaders() {
                        *so_far.entry(leader.name().to_owned()).or_insert(0) += 1;
                    }
                    so_far.values().copied().max().unwrap_or(0)
                })
                .collect();
            led
        };
        let from_below = counts(&mut sorted.iter());
        let from_above = counts(&mut sorted.iter().rev());
        for place in 1..sorted.len() {
            let (low, high) = (
                whole_size(sorted[place - 1], axis),
                whole_size(sorted[place], axis),
            );
            if low == high {
                continue;
            }
            let lost = sorted.len() - from_below[place - 1] - from_above[sorted.len() - place - 1];
            if best.as_ref().is_none_or(|(least, ..)| lost < *least) {
                let middle = ((low as f64) * (high as f64)).sqrt() as u64;
                best = Some((lost, axis.clone(), middle.clamp(low, high - 1)));
            }
        }
    }
    best.map(|(_, axis, at)| (axis, at))
}

/// The region with the contender that leads most often in it, and of those the one with the least to lose; none if
/// that one has no time on some of its shapes.
fn settled(mut region: Rule, races: &[&Race]) -> Option<Rule> {
    let counts = races.iter().fold(BTreeMap::new(), count);
    let most = counts.values().copied().max().unwrap_or(0);
    let regret = |contender: &str| {
        let regrets = races
            .iter()
            .map(|race| race.regret(contender).unwrap_or(f64::INFINITY));
        regrets.fold(0.0, f64::max)
    };
    let leaders = counts.iter().filter(|(_, count)| **count == most);
    let least = leaders
        .map(|(name, _)| (regret(name), *name))
        .min_by(|left, right| left.0.total_cmp(&right.0));
    let (slower_by, contender) = least.filter(|(slower_by, _)| slower_by.is_finite())?;
    region.contender = contender.to_owned();
    region.slower_by = (slower_by * 1e4).ceil() / 1e4;
    region.shapes = races.len();
    region.agreed = most == races.len();
    Some(region)
}

impl Table {
    pub fn to_json(&self) -> String {
        let rules: Vec<String> = self
            .rules
            .iter()
            .map(|rule| serde_json::json!(rule).to_string())
            .collect();
        let device = serde_json::json!(self.device);
        format!(
            "{{\n\"table\": {},\n\"device\": {device},\n\"rules\": [\n{}\n]\n}}\n",
            self.table,
            rules.join(",\n")
        )
    }

    /// One line per rule; the exact axes as `n=4096 k=7168`, the sizes as `m=1..64`.
    pub fn to_csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = "device,op,dtype,exact,sizes,contender,slower_by,shapes,agreed\n".to_owned();
        for rule in &self.rules {
            let exact: Vec<String> = rule
                .exact
                .iter()
                .map(|(axis, value)| format!("{axis}={value}"))
                .collect();
            let range = |(axis, [low, high]): (&String, &[u64; 2])| format!("{axis}={low}..{high}");
            let sizes: Vec<String> = rule.sizes.iter().map(range).collect();
            let words = [
                &self.device,
                &rule.op,
                &rule.dtype,
                &exact.join(" "),
                &sizes.join(" "),
                &rule.contender,
            ];
            let words = words.map(|word| quoted(word));
            text += &format!(
                "{},{},{},{}\n",
                words.join(","),
                rule.slower_by,
                rule.shapes,
                rule.agreed
            );
        }
        text
    }
}
