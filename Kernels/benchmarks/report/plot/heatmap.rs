//! Wins and losses by shape, or the share of roof if there is no baseline.

use super::svg::{Anchor, Svg, WIDTH};
use super::Subject;
use record::{percent_text, ratio_text, Row};
use std::collections::{BTreeMap, BTreeSet};

const LEFT: f64 = 110.0;
const CELLS_MAX: usize = 24;
const CELL_HEIGHT: f64 = 24.0;

/// One block of cells per contender.
pub fn heatmap(subject: &Subject) -> Option<String> {
    let by_speedup = subject.rows.iter().any(|row| row.headline().is_some());
    let value = |row: &Row| match by_speedup {
        true => row.headline().map(|speedup| speedup.ratio),
        false => row.metrics.roof_share,
    };
    let valued: Vec<&Row> = subject
        .rows
        .iter()
        .copied()
        .filter(|row| value(row).is_some())
        .collect();
    let (x_axis, y_axis) = axes(&valued)?;
    let xs = sizes(&valued, &x_axis);
    let ys = y_axis.as_ref().map_or(vec![0], |axis| sizes(&valued, axis));
    let (xs, ys) = (thinned(xs), thinned(ys));
    let what = match by_speedup {
        true => {
            "ours against the best other, others against the baseline: blue is faster, red slower"
        }
        false => "share of the measured roof: blue is more",
    };
    let mut svg = Svg::new(0.0, &subject.title, &format!("{}; {what}", subject.device));
    let cell_width = ((WIDTH - LEFT - 16.0) / xs.len() as f64).min(90.0);
    let mut y = 72.0;
    for (name, _, rows) in subject.series() {
        let mut cells: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
        for row in rows {
            let place = Some((
                size(row, &x_axis).unwrap_or(0),
                y_axis
                    .as_ref()
                    .and_then(|axis| size(row, axis))
                    .unwrap_or(0),
            ));
            if let (Some(place), Some(value)) = (place, value(row)) {
                cells.entry(place).or_default().push(value);
            }
        }
        if cells.is_empty() {
            continue;
        }
        svg.text(16.0, y, 12.0, Anchor::Start, name);
        y += 8.0;
        for &row_size in &ys {
            if let Some(axis) = &y_axis {
                let text = format!("{axis} {row_size}");
                svg.faint_text(LEFT - 8.0, y + 16.0, 11.0, Anchor::End, &text);
            }
            for (column, &column_size) in xs.iter().enumerate() {
                let Some(values) = cells.get(&(column_size, row_size)) else {
                    continue;
                };
                let mean = geometric_mean(values);
                let at = (LEFT + column as f64 * cell_width, y);
                let text = match by_speedup {
                    true => ratio_text(mean),
                    false => percent_text(mean),
                };
                let tip = format!(
                    "{name} {x_axis} {column_size}: {text}, {} rows",
                    values.len()
                );
                let (colour, ink) = colour(mean, by_speedup);
                svg.rect(at, (cell_width - 2.0, CELL_HEIGHT - 2.0), &colour, &tip);
                if cell_width > 34.0 {
                    svg.label(at.0 + cell_width / 2.0 - 1.0, y + 15.0, ink, &text);
                }
            }
            y += CELL_HEIGHT;
        }
        for (column, column_size) in xs.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) * cell_width - 1.0;
            let text = super::axis::short(*column_size as f64);
            svg.faint_text(x, y + 13.0, 11.0, Anchor::Middle, &text);
        }
        svg.faint_text(LEFT - 8.0, y + 13.0, 11.0, Anchor::End, &x_axis);
        y += 38.0;
    }
    svg.set_height(y);
    Some(svg.finish())
}

fn size(row: &Row, axis: &str) -> Option<i64> {
    row.workload.axes.get(axis)?.as_i64()
}

fn sizes(rows: &[&Row], axis: &str) -> Vec<i64> {
    let sizes: BTreeSet<i64> = rows.iter().filter_map(|row| size(row, axis)).collect();
    sizes.into_iter().collect()
}

/// The two axes that give the fullest grid of the workloads, or a single one if no other varies. Sizes
/// derived from others (rows = batch x sequence) make grids with holes.
fn axes(rows: &[&Row]) -> Option<(String, Option<String>)> {
    let mut names: BTreeSet<&String> = rows
        .iter()
        .flat_map(|row| row.workload.axes.keys())
        .collect();
    names.retain(|name| !sizes(rows, name).is_empty());
    let varying: Vec<&String> = names
        .iter()
        .copied()
        .filter(|name| sizes(rows, name).len() > 1)
        .collect();
    let mut best = ((0, 0.0), None);
    for (index, &first) in varying.iter().enumerate() {
        for &second in &varying[index + 1..] {
            let pairs: BTreeSet<(Option<i64>, Option<i64>)> = rows
                .iter()
                .map(|row| (size(row, first), size(row, second)))
                .collect();
            let (wide, high) = (sizes(rows, first).len(), sizes(rows, second).len());
            // More cells separate workloads better; on a tie, take the fuller grid.
            let score = (pairs.len(), pairs.len() as f64 / (wide * high) as f64);
            if score > best.0 {
                let longest_first = if wide >= high {
                    (first, second)
                } else {
                    (second, first)
                };
                best = (score, Some(longest_first));
            }
        }
    }
    match best.1 {
        Some((x, y)) => Some((x.clone(), Some(y.clone()))),
        None => {
            let only = varying.first().or(names.iter().next())?;
            Some(((*only).clone(), None))
        }
    }
}

/// As many as fit, evenly chosen.
fn thinned(sizes: Vec<i64>) -> Vec<i64> {
    let step = sizes.len().div_ceil(CELLS_MAX).max(1);
    sizes.into_iter().step_by(step).collect()
}

fn geometric_mean(values: &[f64]) -> f64 {
    let logarithms = values.iter().map(|value| value.max(1e-9).ln());
    (logarithms.sum::<f64>() / values.len() as f64).exp()
}

/// Blue for more, red for less than 1; the full colour at a factor of 1.5. Shares go from white to blue.
fn colour(value: f64, by_speedup: bool) -> (String, &'static str) {
    let (share, end) = match by_speedup {
        true => {
            let share = (value.ln() / 1.5f64.ln()).clamp(-1.0, 1.0);
            let end = if share > 0.0 {
                (0, 114, 178)
            } else {
                (203, 66, 28)
            };
            (share.abs(), end)
        }
        false => (value.clamp(0.0, 1.0), (0, 114, 178)),
    };
    let mix = |end: i32| (235.0 + (f64::from(end) - 235.0) * share).round() as i32;
    let ink = if share > 0.55 { "#ffffff" } else { "#1d2733" };
    (
        format!("#{:02x}{:02x}{:02x}", mix(end.0), mix(end.1), mix(end.2)),
        ink,
    )
}
