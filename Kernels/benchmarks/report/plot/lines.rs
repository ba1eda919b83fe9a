//! Throughput and share of the roof: a line per contender along the axis that matters, from zero up.

use super::axis::{short, size_text, LogScale, ZeroScale};
use super::panels::{panels, size, sizes, Panel, PANELS_MAX};
use super::picture::Picture;
use super::tile::{About, Anchor, Tile, WIDTH};
use super::{Point, Subject};
use record::{count_text, percent_text, significant, time_us_text, Row};
use std::collections::BTreeMap;

const LEFT: f64 = 38.0;
const RIGHT: f64 = WIDTH - 38.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 172.0;
const HEIGHT: f64 = 204.0;
/// A roof further away than this would squash the lines.
const ROOF_REACH: f64 = 1.3;
const ROOF: &str = "#8c8c8c";

/// A rate and its unit.
struct Rate {
    unit: &'static str,
    of: fn(&Row) -> Option<f64>,
}

pub fn throughput(subject: &Subject) -> Option<Picture> {
    let rated = |point: &Point| {
        point
            .row
            .metrics
            .tbps
            .or(point.row.metrics.tflops)
            .is_some()
    };
    let rated: Vec<Point> = subject.points.iter().copied().filter(rated).collect();
    let found = panels(&rated)?;
    let shown = found.panels.len().min(PANELS_MAX);
    let mut subtitle = format!(
        "Throughput by {}; on the right, share of the measured roof",
        found.axis
    );
    if found.panels.len() > shown {
        subtitle += &format!("; the largest {shown} of {} panels", found.panels.len());
    }
    if found.alone > 0 {
        subtitle += &format!("; {} off these axes", count_text(found.alone, "workload"));
    }
    let tiles = found.panels.iter().take(shown);
    Some(Picture {
        title: format!("{}: throughput", subject.title),
        subtitle: format!("{}. {subtitle}", subject.device),
        legend: subject.legend(),
        tiles: tiles
            .map(|panel| tile(subject, panel, found.axis))
            .collect(),
    })
}

/// In the unit of the roof that is closer for most rows; in thousandths where a tera is far away.
fn rate(panel: &Panel) -> Rate {
    let rows = || panel.points.iter().map(|point| point.row);
    let memory = |row: &&Row| {
        let roof = row.metrics.roof.as_deref();
        roof.is_none_or(|name| name.starts_with("hbm") || name.starts_with("memory"))
    };
    let small = |of: fn(&Row) -> Option<f64>| rows().filter_map(of).all(|rate| rate < 0.1);
    let of_memory = 2 * rows().filter(memory).count() >= panel.points.len();
    match (
        of_memory,
        small(|row| row.metrics.tbps),
        small(|row| row.metrics.tflops),
    ) {
        (true, false, _) => Rate {
            unit: "TB/s",
            of: |row| row.metrics.tbps,
        },
        (true, true, _) => Rate {
            unit: "GB/s",
            of: |row| Some(1e3 * row.metrics.tbps?),
        },
        (false, _, false) => Rate {
            unit: "TFLOP/s",
            of: |row| row.metrics.tflops,
        },
        (false, _, true) => Rate {
            unit: "GFLOP/s",
            of: |row| Some(1e3 * row.metrics.tflops?),
        },
    }
}

/// The roof as the rows of a panel saw it, their rate over their share of it; none if they saw several.
fn roof(panel: &Panel, rate: &Rate) -> Option<f64> {
    let names = panel
        .points
        .iter()
        .filter_map(|point| point.row.metrics.roof.as_deref());
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    let seen = |point: &Point| {
        let share = point.row.metrics.roof_share.filter(|share| *share > 0.0)?;
        Some((rate.of)(point.row)? / share)
    };
    let mut roofs: Vec<f64> = panel.points.iter().filter_map(seen).collect();
    roofs.sort_by(f64::total_cmp);
    let (low, high) = (roofs.first()?, roofs.last()?);
    (names.len() == 1 && high / low < 1.001).then(|| roofs[roofs.len() / 2])
}

fn tile(subject: &Subject, panel: &Panel, axis: &str) -> Tile {
    let rate = rate(panel);
    let mut tile = Tile::new(&format!("{}: {}", panel.title, rate.unit), HEIGHT);
    let rows = || panel.points.iter().map(|point| point.row);
    let at: Vec<i64> = sizes(rows(), axis).into_iter().collect();
    let x = LogScale::over(
        at.iter().map(|size| *size as f64),
        1.0,
        LEFT + 10.0,
        RIGHT - 10.0,
    );
    let most = rows().filter_map(rate.of).fold(0.0, f64::max);
    let (Some(x), true) = (x, most > 0.0) else {
        return tile;
    };
    let roof = roof(panel, &rate);
    let high = match roof {
        Some(roof) if roof < ROOF_REACH * most => roof.max(most),
        _ => most,
    };
    let y = ZeroScale {
        high: 1.06 * high,
        from: BOTTOM,
        to: TOP,
    };
    let ticks = y.ticks();
    let grid: Vec<_> = ticks
        .iter()
        .map(|tick| ((LEFT, y.place(*tick)), (RIGHT, y.place(*tick))))
        .collect();
    tile.rules(&grid, 0.13);
    for tick in ticks {
        tile.faint_text((LEFT - 4.0, y.place(tick) + 3.5), Anchor::End, &short(tick));
    }
    if let Some(roof) = roof {
        if roof <= y.high {
            tile.path(
                &[(LEFT, y.place(roof)), (RIGHT, y.place(roof))],
                ROOF,
                1.0,
                true,
            );
        }
        let shares = ZeroScale {
            high: 100.0 * y.high / roof,
            ..y
        };
        for share in shares.ticks() {
            let text = format!("{} %", short(share));
            tile.faint_text(
                (RIGHT + 4.0, shares.place(share) + 3.5),
                Anchor::Start,
                &text,
            );
        }
    }
    x_axis(&mut tile, &at, x, axis);
    // Ours last, on top.
    for (index, series) in subject.series.iter().enumerate().rev() {
        let mut points: BTreeMap<i64, Point> = BTreeMap::new();
        for point in panel
            .points
            .iter()
            .filter(|point| point.row.contender.name == series.name)
        {
            points.insert(size(point.row, axis).unwrap_or(0), *point);
        }
        let placed: Vec<((f64, f64), Point)> = points
            .into_iter()
            .filter_map(|(size, point)| {
                Some((
                    (x.place(size as f64), y.place((rate.of)(point.row)?)),
                    point,
                ))
            })
            .collect();
        let path: Vec<(f64, f64)> = placed.iter().map(|(at, _)| *at).collect();
        tile.path(
            &path,
            series.look.colour,
            if series.own && index == 0 { 2.5 } else { 1.3 },
            false,
        );
        for (at, point) in placed {
            tile.dot(at, series.look, about(point));
        }
    }
    tile
}

/// Sizes that were measured, as many as have room.
fn x_axis(tile: &mut Tile, sizes: &[i64], x: LogScale, axis: &str) {
    tile.rules(&[((LEFT, BOTTOM), (RIGHT, BOTTOM))], 0.6);
    let mut free = f64::NEG_INFINITY;
    for size in sizes {
        let (at, text) = (x.place(*size as f64), size_text(*size));
        let half = 3.2 * text.chars().count() as f64;
        if at - half > free {
            tile.faint_text((at, BOTTOM + 14.0), Anchor::Middle, &text);
            free = at + half + 3.0;
        }
    }
    tile.faint_text((WIDTH / 2.0, BOTTOM + 28.0), Anchor::Middle, axis);
}

pub fn about(point: Point) -> About {
    let row = point.row;
    let share = row.metrics.roof_share.map_or(String::new(), |share| {
        format!(", {} of the roof", percent_text(share))
    });
    let rate = match (row.metrics.tflops, row.metrics.tbps) {
        (Some(tflops), Some(tbps)) => format!(
            ", {} TFLOP/s, {} TB/s",
            significant(tflops, 3),
            significant(tbps, 3)
        ),
        _ => String::new(),
    };
    let median_us = row.time.as_ref().map_or(f64::NAN, |time| time.median_us);
    About {
        tip: format!(
            "{} {}/{}: {} us{rate}{share}",
            row.contender.name,
            row.workload.suite,
            row.workload.name,
            time_us_text(median_us)
        ),
        row: Some(point.index),
    }
}
