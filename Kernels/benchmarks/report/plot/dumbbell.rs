//! Ours and the best other on every workload: two marks and the distance between them.

use super::axis::{short, ZeroScale};
use super::lines::about;
use super::picture::Picture;
use super::tile::{shortened, Anchor, Look, Tile, WIDTH};
use super::{median_us, verdict_colour, Point, Subject};
use record::{count_text, ratio_text, ContenderKind, Speedup};
use std::collections::{BTreeMap, BTreeSet};

const LEFT: f64 = 140.0;
const RIGHT: f64 = WIDTH - 44.0;
const TOP: f64 = 26.0;
const STEP: f64 = 15.0;
/// More in one tile are only its extremes.
const ROWS_MAX: usize = 16;
const TILES_MAX: usize = 10;

struct Pair<'a> {
    ours: Point<'a>,
    other: Point<'a>,
    speedup: &'a Speedup,
}

impl Pair<'_> {
    /// Shares of the roof, or of the faster of the two where there is no roof.
    fn shares(&self) -> (f64, f64) {
        let roof = |point: Point| point.row.metrics.roof_share;
        match (roof(self.ours), roof(self.other)) {
            (Some(ours), Some(other)) => (ours, other),
            _ => {
                let fastest = median_us(self.ours.row).min(median_us(self.other.row));
                (
                    fastest / median_us(self.ours.row),
                    fastest / median_us(self.other.row),
                )
            }
        }
    }
}

pub fn dumbbell(subject: &Subject) -> Option<Picture> {
    let mut others: BTreeMap<(&str, &str, &str), Point> = BTreeMap::new();
    for point in &subject.points {
        let (workload, name) = (&point.row.workload, &point.row.contender.name);
        others.insert((&workload.suite, &workload.name, name), *point);
    }
    let ours = subject.series.iter().find(|series| series.own)?;
    let mut suites: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
    let own = subject
        .points
        .iter()
        .filter(|point| point.row.contender.kind == ContenderKind::Own);
    for point in own.filter(|point| point.row.contender.name == ours.name) {
        let Some(best) = &point.row.against_best else {
            continue;
        };
        let workload = &point.row.workload;
        if let Some(other) =
            others.get(&(&*workload.suite, &*workload.name, &*best.speedup.baseline))
        {
            let pair = Pair {
                ours: *point,
                other: *other,
                speedup: &best.speedup,
            };
            suites.entry(&workload.suite).or_default().push(pair);
        }
    }
    if suites.is_empty() {
        return None;
    }
    let pairs = || suites.values().flatten();
    let raced: BTreeSet<&str> = pairs()
        .flat_map(|pair| [pair.ours, pair.other])
        .map(|point| &*point.row.contender.name)
        .collect();
    let mut legend = subject.legend();
    legend.retain(|(name, _)| raced.contains(&**name));
    let left_out = suites.len().saturating_sub(TILES_MAX);
    let more = match left_out {
        0 => String::new(),
        count => format!("; {} not shown", count_text(count, "more suite")),
    };
    let tiles = suites.into_iter().take(TILES_MAX);
    Some(Picture {
        title: format!("{}: {} and the best other", subject.title, ours.name),
        subtitle: format!(
            "{}. Share of the measured roof; the number is the best other's time over ours, blue if we \
             are faster{more}",
            subject.device
        ),
        legend,
        tiles: tiles.map(|(suite, pairs)| tile(subject, suite, pairs)).collect(),
    })
}

fn tile(subject: &Subject, suite: &str, mut pairs: Vec<Pair>) -> Tile {
    pairs.sort_by(|left, right| left.speedup.ratio.total_cmp(&right.speedup.ratio));
    let total = pairs.len();
    let title = match total > ROWS_MAX {
        true => format!("{suite}: lowest and highest {} of {total}", ROWS_MAX / 2),
        false => suite.to_owned(),
    };
    if total > ROWS_MAX {
        pairs.drain(ROWS_MAX / 2..total - ROWS_MAX / 2);
    }
    let bottom = TOP + STEP * pairs.len() as f64;
    let mut tile = Tile::new(&title, bottom + 20.0);
    let most = pairs
        .iter()
        .map(Pair::shares)
        .fold(0.0f64, |most, (ours, other)| most.max(ours).max(other));
    let x = ZeroScale {
        high: 100.0 * (1.04 * most).max(1e-6),
        from: LEFT,
        to: RIGHT,
    };
    let ticks = x.ticks();
    let grid: Vec<_> = ticks
        .iter()
        .map(|tick| ((x.place(*tick), TOP), (x.place(*tick), bottom)))
        .collect();
    tile.rules(&grid, 0.13);
    for tick in ticks {
        tile.faint_text(
            (x.place(tick), bottom + 13.0),
            Anchor::Middle,
            &format!("{} %", short(tick)),
        );
    }
    let look = |point: Point| -> Look { subject.look(&point.row.contender.name) };
    for (index, pair) in pairs.iter().enumerate() {
        let y = TOP + STEP * (index as f64 + 0.5);
        let name = shortened(&pair.ours.row.workload.name, 20);
        tile.faint_text((LEFT - 8.0, y + 3.5), Anchor::End, &name);
        let (ours, other) = pair.shares();
        let colour = verdict_colour(pair.speedup.verdict);
        let ends = [(x.place(100.0 * ours), y), (x.place(100.0 * other), y)];
        tile.path(&ends, colour, 3.0, false);
        tile.dot(ends[1], look(pair.other), about(pair.other));
        tile.dot(ends[0], look(pair.ours), about(pair.ours));
        tile.label(
            (WIDTH - 20.0, y + 3.5),
            colour,
            &ratio_text(pair.speedup.ratio),
        );
    }
    tile
}
