//! Rate over arithmetic intensity, below the measured roofs.

use super::axis::{short, LogScale};
use super::lines::about;
use super::picture::Picture;
use super::tile::{shortened, Anchor, Tile, WIDTH};
use super::{Point, Subject};
use record::{significant, Roof, Row};

const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 230.0;
const POINTS_MAX: usize = 300;

pub fn roofline(subject: &Subject) -> Option<Picture> {
    let roofs = &subject.view.file.meta.roofs;
    let memory = highest(roofs, |roof| roof.unit == "TB/s")?;
    let compute = compute_roof(subject, roofs)?;
    let place = |point: &Point| Some((intensity(point.row)?, point.row.metrics.tflops?));
    let all: Vec<(f64, f64)> = subject.points.iter().filter_map(place).collect();
    if all.is_empty() {
        return None;
    }
    let ridge = compute.value / memory.value;
    let x = LogScale::over(all.iter().map(|(x, _)| *x).chain([ridge]), 1.4, LEFT, RIGHT)?;
    let under = [compute.value, x.low * memory.value];
    let y = LogScale::over(all.iter().map(|(_, y)| *y).chain(under), 1.4, BOTTOM, TOP)?;
    let mut tile = Tile::new(
        "TFLOP/s by FLOP per byte of logical input and output",
        BOTTOM + 24.0,
    );
    frame(&mut tile, x, y);
    let reach = |intensity: f64| y.place((intensity * memory.value).min(compute.value));
    let corners = [x.low, ridge.clamp(x.low, x.high), x.high];
    tile.path(
        &corners.map(|at| (x.place(at), reach(at))),
        "#8c8c8c",
        1.5,
        true,
    );
    let label = |roof: &Roof| format!("{} {} {}", roof.name, significant(roof.value, 4), roof.unit);
    tile.faint_text((RIGHT, reach(x.high) - 5.0), Anchor::End, &label(compute));
    // Nothing is above the roof, so the corner beside its slope is free.
    tile.faint_text((LEFT + 4.0, TOP + 2.0), Anchor::Start, &label(memory));
    let step = subject.points.len().div_ceil(POINTS_MAX).max(1);
    for series in subject.series.iter().rev() {
        let of = subject
            .points
            .iter()
            .filter(|point| point.row.contender.name == series.name);
        for point in of.step_by(step) {
            if let Some((intensity, rate)) = place(point) {
                tile.dot(
                    (x.place(intensity), y.place(rate)),
                    series.look,
                    about(*point),
                );
            }
        }
    }
    label_extremes(&mut tile, subject, |point| {
        place(point).map(|(i, rate)| (x.place(i), y.place(rate)))
    });
    Some(Picture {
        title: format!("{}: roofline", subject.title),
        subtitle: subject.device.to_owned(),
        legend: subject.legend(),
        tiles: vec![tile],
    })
}

/// The compute roof of these rows: the one they name, otherwise that of plain arithmetic.
fn compute_roof<'a>(subject: &Subject, roofs: &'a [Roof]) -> Option<&'a Roof> {
    let by_name = |name: &str| {
        roofs
            .iter()
            .find(|roof| roof.name == name && roof.unit == "TFLOP/s")
    };
    let rows = || subject.points.iter().map(|point| point.row);
    let named = rows().find_map(|row| by_name(row.metrics.roof.as_deref()?));
    let typed = format!("tensor_{}", rows().next()?.dtype);
    let is_matrix = rows().any(|row| intensity(row).is_some_and(|intensity| intensity > 20.0));
    named
        .or_else(|| by_name(&typed).filter(|_| is_matrix))
        .or_else(|| by_name("fp32"))
        .or_else(|| highest(roofs, |roof| roof.unit == "TFLOP/s"))
}

/// Which workloads of ours are closest to the roof and furthest from it.
fn label_extremes(
    tile: &mut Tile,
    subject: &Subject,
    place: impl Fn(&Point) -> Option<(f64, f64)>,
) {
    let Some(ours) = subject.series.iter().find(|series| series.own) else {
        return;
    };
    let of = || {
        subject
            .points
            .iter()
            .filter(|point| point.row.contender.name == ours.name)
    };
    let share = |point: &Point| point.row.metrics.roof_share;
    let by_share = |left: &&Point, right: &&Point| {
        share(left)
            .unwrap_or(0.0)
            .total_cmp(&share(right).unwrap_or(0.0))
    };
    for point in [of().min_by(by_share), of().max_by(by_share)]
        .into_iter()
        .flatten()
    {
        if let (Some((x, y)), Some(share)) = (place(point), share(point)) {
            let name = shortened(&point.row.workload.name, 22);
            let text = format!("{name}, {:.0} %", 100.0 * share);
            let (anchor, x) = if x > WIDTH / 2.0 {
                (Anchor::End, x - 6.0)
            } else {
                (Anchor::Start, x + 6.0)
            };
            tile.text((x, y + 12.0), 10.0, anchor, &text);
        }
    }
}

fn frame(tile: &mut Tile, x: LogScale, y: LogScale) {
    let columns = x
        .ticks()
        .into_iter()
        .map(|tick| (x.place(tick), short(tick)));
    let lines = y
        .ticks()
        .into_iter()
        .map(|tick| (y.place(tick), short(tick)));
    let (columns, lines): (Vec<_>, Vec<_>) = (columns.collect(), lines.collect());
    let mut grid: Vec<_> = columns
        .iter()
        .map(|(at, _)| ((*at, BOTTOM), (*at, TOP)))
        .collect();
    grid.extend(lines.iter().map(|(at, _)| ((LEFT, *at), (RIGHT, *at))));
    tile.rules(&grid, 0.13);
    tile.rules(
        &[
            ((LEFT, BOTTOM), (RIGHT, BOTTOM)),
            ((LEFT, BOTTOM), (LEFT, TOP)),
        ],
        0.6,
    );
    for (at, text) in columns {
        tile.faint_text((at, BOTTOM + 14.0), Anchor::Middle, &text);
    }
    for (at, text) in lines {
        tile.faint_text((LEFT - 4.0, at + 3.5), Anchor::End, &text);
    }
}

fn intensity(row: &Row) -> Option<f64> {
    let (flops, bytes) = (row.metrics.tflops?, row.metrics.tbps?);
    (flops > 0.0 && bytes > 0.0).then(|| flops / bytes)
}

fn highest(roofs: &[Roof], which: impl Fn(&Roof) -> bool) -> Option<&Roof> {
    let of = roofs.iter().filter(|roof| which(roof));
    of.max_by(|left, right| left.value.total_cmp(&right.value))
}
