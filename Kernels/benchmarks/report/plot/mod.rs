//! Pictures of a view, as SVG: latency and throughput by size, speed-ups, roofline, heat map.
//!
//! Ink is `currentColor` and the paper has a class, so that a page can recolour both; a standalone
//! file is dark on white.

mod axis;
mod heatmap;
mod png;
mod roofline;
mod sizes;
mod speedups;
mod svg;

use crate::View;
use record::{ContenderKind, Row};
use std::collections::BTreeMap;

pub use png::to_png;

const SLUG_MAX: usize = 200;

/// One picture.
#[derive(Debug, Clone)]
pub struct Plot {
    /// File name without extension.
    pub name: String,
    pub title: String,
    pub svg: String,
}

/// Colours that people with any colour vision can tell apart, on white and on black (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c",
];

/// All plots of a view, one set per operation and type.
pub fn plots(view: &View) -> Vec<Plot> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
    let competes = |row: &&Row| row.contender.kind != ContenderKind::Control;
    let timed = view.file.rows.iter().filter(|row| row.time.is_some());
    for row in timed.filter(competes) {
        groups.entry((&row.op, &row.dtype)).or_default().push(row);
    }
    let mut plots = Vec::new();
    for ((op, dtype), rows) in groups {
        let subject = Subject {
            title: format!("{op} {dtype}"),
            device: &view.title,
            rows: &rows,
            view,
        };
        let made = [
            ("latency", sizes::latency(&subject)),
            ("throughput", sizes::throughput(&subject)),
            ("speedup", speedups::bars(&subject)),
            ("roofline", roofline::scatter(&subject)),
            ("heatmap", heatmap::heatmap(&subject)),
        ];
        for (kind, svg) in made {
            plots.extend(svg.map(|svg| Plot {
                name: slug(&format!("{} {op} {dtype} {kind}", view.title)),
                title: format!("{op} {dtype}: {kind}"),
                svg,
            }));
        }
    }
    plots
}

/// What a picture is about.
struct Subject<'a> {
    title: String,
    device: &'a str,
    rows: &'a [&'a Row],
    view: &'a View,
}

impl<'a> Subject<'a> {
    /// Rows by contender, each with its colour, sorted by name.
    fn series(&self) -> Vec<(&'a str, &'static str, Vec<&'a Row>)> {
        let mut by_name: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for &row in self.rows {
            by_name.entry(&row.contender.name).or_default().push(row);
        }
        let coloured = by_name.into_iter().enumerate();
        coloured
            .map(|(index, (name, rows))| (name, COLOURS[index % COLOURS.len()], rows))
            .collect()
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

/// Logical bytes of a workload, from the rate at which a row moved them.
fn bytes(row: &Row) -> Option<f64> {
    let tbps = row.metrics.tbps.filter(|tbps| *tbps > 0.0)?;
    Some(tbps * median_us(row) * 1e6)
}
