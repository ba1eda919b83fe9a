//! Where ours wins and loses over two axes of the shape, or the share of roof if there is no rival.

use super::axis::size_text;
use super::panels::{size, sizes};
use super::picture::Picture;
use super::tile::{About, Anchor, Tile, WIDTH};
use super::{Point, Subject};
use record::{count_text, percent_text, Row};
use std::collections::{BTreeMap, BTreeSet};

const LEFT: f64 = 50.0;
const TOP: f64 = 24.0;
const COLUMNS_MAX: usize = 8;
const LINES_MAX: usize = 14;
const CELL: f64 = 22.0;

pub fn winmap(subject: &Subject) -> Option<Picture> {
    let points_of = |name: &str, value: fn(&Row) -> Option<f64>| -> Vec<Point> {
        let of = subject.points.iter().copied();
        of.filter(|point| point.row.contender.name == name && value(point.row).is_some())
            .collect()
    };
    let ratio = |row: &Row| Some(row.against_best.as_ref()?.speedup.ratio);
    let ours = subject.series.iter().find(|series| series.own);
    let raced = ours.map(|ours| points_of(ours.name, ratio));
    if let Some(points) = raced.filter(|points| !points.is_empty()) {
        let tile = tile(subject.series[0].name, &points, ratio, true)?;
        return Some(Picture {
            title: format!("{}: win map", subject.title),
            subtitle: format!(
                "{}. The best other's time over ours: blue is faster, orange slower",
                subject.device
            ),
            legend: Vec::new(),
            tiles: vec![tile],
        });
    }
    let share = |row: &Row| row.metrics.roof_share;
    let tiles = subject
        .series
        .iter()
        .filter_map(|series| tile(series.name, &points_of(series.name, share), share, false));
    let tiles: Vec<Tile> = tiles.collect();
    (!tiles.is_empty()).then(|| Picture {
        title: format!("{}: share of the roof", subject.title),
        subtitle: format!("{}. Blue is closer to the measured roof", subject.device),
        legend: Vec::new(),
        tiles,
    })
}

/// None without an axis to lay the workloads out on.
fn tile(
    name: &str,
    points: &[Point],
    value: fn(&Row) -> Option<f64>,
    by_ratio: bool,
) -> Option<Tile> {
    let (x_axis, y_axis) = axes(points)?;
    let mut cells: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
    for point in points {
        let y = y_axis
            .as_ref()
            .map_or(Some(0), |axis| size(point.row, axis));
        if let (Some(x), Some(y)) = (size(point.row, &x_axis), y) {
            cells.entry((x, y)).or_default().extend(value(point.row));
        }
    }
    let columns = thinned(cells.keys().map(|(x, _)| *x).collect(), COLUMNS_MAX);
    let lines = thinned(cells.keys().map(|(_, y)| *y).collect(), LINES_MAX);
    let width = ((WIDTH - LEFT - 4.0) / columns.len() as f64).min(60.0);
    let bottom = TOP + CELL * lines.len() as f64;
    let title = match &y_axis {
        Some(y_axis) => format!("{name}: {y_axis} by {x_axis}"),
        None => format!("{name} by {x_axis}"),
    };
    let mut tile = Tile::new(&title, bottom + 34.0);
    for (line, y) in lines.iter().enumerate() {
        let top = TOP + CELL * line as f64;
        if y_axis.is_some() {
            let at = (LEFT - 6.0, top + 14.0);
            tile.faint_text(at, Anchor::End, &size_text(*y));
        }
        for (column, x) in columns.iter().enumerate() {
            let Some(values) = cells.get(&(*x, *y)) else {
                continue;
            };
            let mean = geometric_mean(values);
            let (text, (colour, ink)) = match by_ratio {
                true => (
                    format!("{mean:.2}"),
                    colour((mean.ln() / 1.3f64.ln()).clamp(-1.0, 1.0)),
                ),
                false => (percent_text(mean), colour(mean.clamp(0.0, 1.0))),
            };
            let at = (LEFT + column as f64 * width, top);
            let tip = format!(
                "{name}, {x_axis} {x}: {text}, {}",
                count_text(values.len(), "workload")
            );
            tile.rect(
                at,
                (width - 2.0, CELL - 2.0),
                &colour,
                About { tip, row: None },
            );
            if width > 27.0 {
                tile.label((at.0 + width / 2.0 - 1.0, top + 14.0), ink, &text);
            }
        }
    }
    for (column, x) in columns.iter().enumerate() {
        let at = LEFT + (column as f64 + 0.5) * width - 1.0;
        tile.faint_text((at, bottom + 12.0), Anchor::Middle, &size_text(*x));
    }
    tile.faint_text(
        (LEFT + width * columns.len() as f64 / 2.0, bottom + 26.0),
        Anchor::Middle,
        &x_axis,
    );
    Some(tile)
}

/// The two axes that give the fullest grid of the workloads, or a single one if no other varies. Sizes
/// derived from others (rows = batch x sequence) make grids with holes.
fn axes(points: &[Point]) -> Option<(String, Option<String>)> {
    let rows = || points.iter().map(|point| point.row);
    let names: BTreeSet<&String> = rows().flat_map(|row| row.workload.axes.keys()).collect();
    let count = |name: &str| sizes(rows(), name).len();
    let varying: Vec<&String> = names
        .iter()
        .copied()
        .filter(|name| count(name) > 1)
        .collect();
    let mut best = ((0, 0.0), None);
    for (index, &first) in varying.iter().enumerate() {
        for &second in &varying[index + 1..] {
            let pairs: BTreeSet<_> = rows()
                .map(|row| (size(row, first), size(row, second)))
                .collect();
            let (wide, high) = (count(first), count(second));
            // More cells separate workloads better; on a tie, take the fuller grid.
            let score = (pairs.len(), pairs.len() as f64 / (wide * high) as f64);
            if score > best.0 {
                let tallest_second = if wide <= high {
                    (first, second)
                } else {
                    (second, first)
                };
                best = (score, Some(tallest_second));
            }
        }
    }
    match best.1 {
        Some((x, y)) => Some((x.clone(), Some(y.clone()))),
        None => {
            let sized = names.into_iter().filter(|name| count(name) > 0);
            Some((sized.max_by_key(|name| count(name))?.clone(), None))
        }
    }
}

/// As many as fit, evenly chosen.
fn thinned(sizes: BTreeSet<i64>, fits: usize) -> Vec<i64> {
    let step = sizes.len().div_ceil(fits).max(1);
    sizes.into_iter().step_by(step).collect()
}

fn geometric_mean(values: &[f64]) -> f64 {
    let logarithms = values.iter().map(|value| value.max(1e-9).ln());
    (logarithms.sum::<f64>() / values.len() as f64).exp()
}

/// From orange at -1 over grey to blue at 1, and the ink for it.
fn colour(value: f64) -> (String, &'static str) {
    let end = if value > 0.0 {
        (0, 114, 178)
    } else {
        (213, 94, 0)
    };
    let mix = |end: i32| (235.0 + (f64::from(end) - 235.0) * value.abs()).round() as i32;
    let ink = if value.abs() > 0.55 {
        "#ffffff"
    } else {
        "#1d2733"
    };
    (
        format!("#{:02x}{:02x}{:02x}", mix(end.0), mix(end.1), mix(end.2)),
        ink,
    )
}
