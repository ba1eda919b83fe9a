//! Pictures of a view: throughput along the axis that matters, ours against the best other, win map, roofline.
//!
//! The same tiles make an SVG for a file, a PNG, and the figures of the page.

mod axis;
mod dumbbell;
mod lines;
mod panels;
pub(crate) mod picture;
mod png;
mod roofline;
pub(crate) mod tile;
mod winmap;

use crate::View;
use picture::Picture;
use record::{ContenderKind, Row};
use stats::Verdict;
use std::collections::BTreeMap;
use tile::Look;

pub use png::to_png;
pub use tile::escaped;

const SLUG_MAX: usize = 200;

/// One picture as a file.
#[derive(Debug, Clone)]
pub struct Plot {
    /// File name without extension.
    pub name: String,
    pub title: String,
    pub svg: String,
}

/// Colours that people with any colour vision can tell apart, on white and on black (Okabe and Ito); the first is
/// ours. Beyond seven contenders the marks are squares.
const COLOURS: [&str; 7] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c",
];

/// All pictures of a view as files, one set per operation and type.
pub fn plots(view: &View) -> Vec<Plot> {
    let subjects = subjects(view);
    let pictures = subjects.iter().flat_map(|subject| {
        let named = subject.pictures().into_iter();
        named.map(move |(kind, picture)| Plot {
            name: slug(&format!("{} {} {kind}", view.title, subject.title)),
            title: picture.title.clone(),
            svg: picture.to_svg(),
        })
    });
    pictures.collect()
}

/// The figures of each operation and type for a page, in which the view's rows begin with `first`.
pub fn figures(view: &View, first: usize) -> BTreeMap<(String, String), String> {
    let of = |subject: Subject| {
        let pictures = subject.pictures().into_iter();
        let html = pictures
            .map(|(_, picture)| picture.to_html(first))
            .collect();
        let row = subject.points[0].row;
        ((row.op.clone(), row.dtype.clone()), html)
    };
    subjects(view).into_iter().map(of).collect()
}

/// A row with a time, and its index in the view.
#[derive(Clone, Copy)]
struct Point<'a> {
    index: usize,
    row: &'a Row,
}

/// A contender in all pictures of an operation.
struct Series<'a> {
    name: &'a str,
    own: bool,
    look: Look,
}

/// What a set of pictures is about: an operation and type.
struct Subject<'a> {
    title: String,
    device: &'a str,
    points: Vec<Point<'a>>,
    /// Ours first, then by name.
    series: Vec<Series<'a>>,
    view: &'a View,
}

fn subjects(view: &View) -> Vec<Subject<'_>> {
    let mut groups: BTreeMap<(&str, &str), Vec<Point>> = BTreeMap::new();
    for (index, row) in view.file.rows.iter().enumerate() {
        if row.time.is_some() && row.contender.kind != ContenderKind::Control {
            groups
                .entry((&row.op, &row.dtype))
                .or_default()
                .push(Point { index, row });
        }
    }
    let mut subjects = Vec::new();
    for ((op, dtype), points) in groups {
        subjects.push(Subject {
            title: format!("{op} {dtype}"),
            device: &view.title,
            series: series(&points),
            points,
            view,
        });
    }
    subjects
}

fn series<'a>(points: &[Point<'a>]) -> Vec<Series<'a>> {
    let mut names: Vec<(bool, &str)> = points
        .iter()
        .map(|point| {
            (
                point.row.contender.kind != ContenderKind::Own,
                &*point.row.contender.name,
            )
        })
        .collect();
    names.sort();
    names.dedup();
    let look = |index: usize| Look {
        colour: COLOURS[index % COLOURS.len()],
        square: index / COLOURS.len() % 2 == 1,
    };
    let series = names
        .into_iter()
        .enumerate()
        .map(|(index, (other, name))| Series {
            name,
            own: !other,
            look: look(index),
        });
    series.collect()
}

impl Subject<'_> {
    fn pictures(&self) -> Vec<(&'static str, Picture)> {
        let made = [
            ("throughput", lines::throughput(self)),
            ("duels", dumbbell::dumbbell(self)),
            ("winmap", winmap::winmap(self)),
            ("roofline", roofline::roofline(self)),
        ];
        made.into_iter()
            .filter_map(|(kind, picture)| Some((kind, picture?)))
            .collect()
    }

    fn legend(&self) -> Vec<(String, Look)> {
        self.series
            .iter()
            .map(|series| (series.name.to_owned(), series.look))
            .collect()
    }

    fn look(&self, name: &str) -> Look {
        let found = self.series.iter().find(|series| series.name == name);
        found.map_or(
            Look {
                colour: COLOURS[6],
                square: true,
            },
            |series| series.look,
        )
    }
}

fn verdict_colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => COLOURS[0],
        Verdict::Slower => COLOURS[5],
        Verdict::Same | Verdict::Ambiguous => COLOURS[6],
    }
}

fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.to_lowercase().replace("nvidia ", "").chars() {
        match character {
            c if c.is_ascii_alphanumeric() || c == '_' || c == '.' => slug.push(c),
            _ if !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    // File systems take 255 bytes; the kind of plot is at the end.
    let start = slug.len().saturating_sub(SLUG_MAX);
    slug[start..].trim_matches(['-', '.']).to_owned()
}

/// Median time of a row with one.
fn median_us(row: &Row) -> f64 {
    row.time.as_ref().map_or(f64::NAN, |time| time.median_us)
}
