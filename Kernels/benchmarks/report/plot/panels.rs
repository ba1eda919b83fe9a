//! Small multiples: the axis that matters for an operation, and workloads that differ in nothing else.

use super::Point;
use record::Row;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What serving and training vary, most telling first: length, rows, tokens, groups.
const AXES: [&str; 10] = [
    "sequence",
    "q_len",
    "kv_longest",
    "rows",
    "m",
    "total_q",
    "tokens",
    "groups",
    "batch",
    "columns",
];
/// More do not fit into a picture.
pub const PANELS_MAX: usize = 8;

/// Workloads along one axis, everything else fixed.
pub struct Panel<'a> {
    pub title: String,
    pub points: Vec<Point<'a>>,
}

pub struct Panels<'a> {
    pub axis: &'static str,
    /// Largest first.
    pub panels: Vec<Panel<'a>>,
    /// Workloads that stand alone in everything else, and so make no line.
    pub alone: usize,
}

pub fn size(row: &Row, axis: &str) -> Option<i64> {
    row.workload.axes.get(axis)?.as_i64()
}

pub fn sizes<'a>(rows: impl Iterator<Item = &'a Row>, axis: &str) -> BTreeSet<i64> {
    rows.filter_map(|row| size(row, axis)).collect()
}

/// Along the axis that puts the most workloads on lines, and among equals on the fewest panels.
pub fn panels<'a>(points: &[Point<'a>]) -> Option<Panels<'a>> {
    let candidates = AXES.iter().map(|axis| along(points, axis));
    let score = |found: &Panels| {
        let on_lines: usize = found.panels.iter().map(|panel| panel.points.len()).sum();
        (on_lines, usize::MAX - found.panels.len())
    };
    // The first of several equals, which is the more telling axis.
    let best = candidates.reduce(|best, next| {
        if score(&next) > score(&best) {
            next
        } else {
            best
        }
    })?;
    (!best.panels.is_empty()).then_some(best)
}

fn along<'a>(points: &[Point<'a>], axis: &'static str) -> Panels<'a> {
    let sized = |point: &&Point| size(point.row, axis).is_some_and(|size| size > 0);
    let mut by_suite: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for point in points.iter().filter(sized) {
        by_suite
            .entry(&point.row.workload.suite)
            .or_default()
            .push(*point);
    }
    let mut found = Vec::new();
    for (suite, points) in by_suite {
        split(suite.to_owned(), points, axis, &mut found);
    }
    let lined = |panel: &Panel| sizes(panel.points.iter().map(|point| point.row), axis).len() > 1;
    found.retain(lined);
    let on_lines: BTreeSet<&str> = found
        .iter()
        .flat_map(|panel| workloads(&panel.points))
        .collect();
    let alone = workloads(points).difference(&on_lines).count();
    found.sort_by_key(|panel| std::cmp::Reverse(panel.points.len()));
    Panels {
        axis,
        panels: found,
        alone,
    }
}

fn workloads<'a>(points: &[Point<'a>]) -> BTreeSet<&'a str> {
    points
        .iter()
        .map(|point| &*point.row.workload.name)
        .collect()
}

/// Divides points by further axes until no contender has two at one size.
fn split<'a>(title: String, points: Vec<Point<'a>>, axis: &str, found: &mut Vec<Panel<'a>>) {
    let mut seen: BTreeMap<(&str, Option<i64>), &BTreeMap<String, Value>> = BTreeMap::new();
    let twice = points.iter().find_map(|point| {
        let axes = &point.row.workload.axes;
        let earlier = seen.insert((&point.row.contender.name, size(point.row, axis)), axes)?;
        Some((earlier, axes))
    });
    let Some((one, other)) = twice else {
        return found.push(Panel { title, points });
    };
    // The axis with the fewest values among those that tell the two apart makes the fewest panels.
    let values = |name: &String| {
        let texts = points
            .iter()
            .map(|point| text(point.row.workload.axes.get(name)));
        texts.collect::<BTreeSet<String>>()
    };
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ = names
        .into_iter()
        .filter(|name| *name != axis && text(one.get(*name)) != text(other.get(*name)));
    let Some(by) = differ.min_by_key(|name| values(name).len()) else {
        return found.push(Panel { title, points });
    };
    let mut parts: BTreeMap<(i64, String), Vec<Point>> = BTreeMap::new();
    for point in &points {
        let value = point.row.workload.axes.get(by);
        let key = (value.and_then(Value::as_i64).unwrap_or(0), text(value));
        parts.entry(key).or_default().push(*point);
    }
    for ((_, value), points) in parts {
        split(format!("{title}, {by} {value}"), points, axis, found);
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => format!("of {}", values.len()),
        Some(value) => value.to_string(),
    }
}
