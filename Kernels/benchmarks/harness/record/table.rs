//! The table that a bench prints. On a terminal it fits the width, dropping the least important
//! columns first; in a pipe it is plain and complete, and every line names its workload.

mod below;

use crate::group::{by_workload, Baselines};
use crate::number::{or_missing, percent_text, ratio_text, RateUnits, MISSING};
use crate::{
    best_groups, groups, time_us_text, Best, Group, ResultFile, Row, Speedup, Status, Time,
};
use below::{controls_line, group_line, reasons};
use stats::Verdict;
use std::collections::BTreeSet;
use std::io::IsTerminal;

/// The style of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableStyle {
    /// Terminal width; unlimited if none.
    pub width: Option<usize>,
    pub color: bool,
}

impl TableStyle {
    /// For a pipe or a file.
    pub const PLAIN: TableStyle = TableStyle {
        width: None,
        color: false,
    };

    /// For standard output: `terminal_width` applies only to a terminal, and a non-empty NO_COLOR turns
    /// colours off.
    pub fn for_stdout(terminal_width: Option<usize>) -> TableStyle {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match std::io::stdout().is_terminal() {
            true => TableStyle {
                width: terminal_width,
                color: !refused,
            },
            false => TableStyle::PLAIN,
        }
    }
}

const RED: &str = "31";
const RED_BOLD: &str = "1;31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";
const BOLD: &str = "1";

/// A cell and its colour.
struct Cell {
    text: String,
    paint: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

struct Column {
    title: String,
    align: Align,
    /// Columns with the highest number are dropped first; 0 stays.
    rank: u8,
    cells: Vec<Cell>,
}

impl Column {
    fn new(title: &str, align: Align, rank: u8, texts: impl Iterator<Item = String>) -> Column {
        let cells = texts.map(|text| Cell { text, paint: None }).collect();
        Column {
            title: title.to_owned(),
            align,
            rank,
            cells,
        }
    }

    fn width(&self) -> usize {
        let texts = self
            .cells
            .iter()
            .map(|cell| &cell.text)
            .chain([&self.title]);
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| cell.text == MISSING)
    }
}

const GAP: &str = "  ";

/// The table of all rows, the geomeans, and the reason for every row without a time.
pub fn to_table(file: &ResultFile, style: TableStyle) -> String {
    let mut text = String::new();
    let baselines = Baselines::of(file);
    let mut sections: Vec<((&str, &str), Vec<&Row>)> = Vec::new();
    for row in by_workload(file) {
        let key = (row.op.as_str(), row.dtype.as_str());
        match sections.iter_mut().find(|(found, _)| *found == key) {
            Some((_, rows)) => rows.push(row),
            None => sections.push((key, vec![row])),
        }
    }
    let device = &file.meta.device;
    for ((op, dtype), rows) in sections {
        let title = format!("{op} {dtype} on {} (device: {})", device.name, device.kind);
        text += &painted(&title, Some(BOLD), style);
        text += "\n";
        text += &section(&rows, &baselines, style);
        text += "\n";
    }
    let groups = groups(file);
    for group in &groups {
        text += &group_line(group, style);
    }
    // The fastest other may be another one for every workload.
    let place =
        |group: &Group| [&group.op, &group.dtype, &group.suite, &group.contender].map(Clone::clone);
    let places: BTreeSet<_> = groups.iter().map(place).collect();
    if places.len() < groups.len() || file.rows.iter().any(has_better_rival) {
        for group in best_groups(file) {
            text += &group_line(&group, style);
        }
    }
    text += &controls_line(file, style);
    text += &reasons(file, style);
    text
}

fn section(rows: &[&Row], baselines: &Baselines, style: TableStyle) -> String {
    let mut columns = columns(rows, baselines);
    columns.retain(|column| column.rank == 0 || !column.is_blank());
    let total = |columns: &[Column]| {
        columns
            .iter()
            .map(|column| column.width() + GAP.len())
            .sum::<usize>()
            - GAP.len()
    };
    while style.width.is_some_and(|width| total(&columns) > width) {
        let least = columns.iter().map(|column| column.rank).max().unwrap_or(0);
        if least == 0 {
            break;
        }
        columns.retain(|column| column.rank != least);
    }
    // On a terminal, empty cells below its name group a workload's rows.
    if style.width.is_some() {
        for index in (1..rows.len()).rev() {
            if columns[0].cells[index].text == columns[0].cells[index - 1].text {
                columns[0].cells[index].text.clear();
            }
        }
    }
    let titles: Vec<Cell> = columns
        .iter()
        .map(|column| Cell {
            text: column.title.clone(),
            paint: Some(DIM),
        })
        .collect();
    let mut text = line(&columns, |index| &titles[index], style);
    for row in 0..rows.len() {
        text += &line(&columns, |index| &columns[index].cells[row], style);
    }
    text
}

fn columns(rows: &[&Row], baselines: &Baselines) -> Vec<Column> {
    use Align::{Left, Right};
    let units = RateUnits::of(rows);
    let time = |of: fn(&Time) -> f64| {
        rows.iter()
            .map(move |row| or_missing(row.time.as_ref().map(of), time_us_text))
    };
    let each = |of: fn(&Row) -> String| rows.iter().map(move |row| of(row));
    let verdicts = Column {
        title: "verdict".to_owned(),
        align: Left,
        rank: 0,
        cells: rows
            .iter()
            .map(|row| Cell {
                text: baselines.verdict_text(row),
                paint: paint_of(row),
            })
            .collect(),
    };
    vec![
        Column::new("workload", Left, 0, each(workload_text)),
        Column::new("contender", Left, 0, each(|row| row.contender.name.clone())),
        Column::new("median us", Right, 0, time(|time| time.median_us)),
        Column::new("p95 us", Right, 5, time(|time| time.p95_us)),
        Column::new("samples", Right, 6, each(samples_text)),
        Column::new(
            units.flops_title,
            Right,
            4,
            rows.iter().map(|row| units.flops(row)),
        ),
        Column::new(
            units.bytes_title,
            Right,
            3,
            rows.iter().map(|row| units.bytes(row)),
        ),
        Column::new(
            "roof",
            Right,
            2,
            each(|row| or_missing(row.metrics.roof_share, percent_text)),
        ),
        Column::new("speed-up", Right, 0, each(speedup_text)),
        verdicts,
        Column::new("vs best other", Left, 1, each(best_text)),
    ]
}

fn paint_of(row: &Row) -> Option<&'static str> {
    match row.status {
        Status::Ok => match row.speedup.as_ref().map(|speedup| speedup.verdict) {
            Some(Verdict::Faster) => Some(GREEN),
            Some(Verdict::Slower) => Some(RED),
            Some(Verdict::Ambiguous) => Some(YELLOW),
            Some(Verdict::Same) => None,
            None => Some(DIM),
        },
        Status::Emulated | Status::Unsupported => Some(DIM),
        _ => Some(RED_BOLD),
    }
}

fn line<'a>(columns: &[Column], cell: impl Fn(usize) -> &'a Cell, style: TableStyle) -> String {
    let mut text = String::new();
    for (index, column) in columns.iter().enumerate() {
        let cell = cell(index);
        let padding = " ".repeat(column.width().saturating_sub(cell.text.chars().count()));
        let painted = painted(&cell.text, cell.paint, style);
        text += if index == 0 { "" } else { GAP };
        text += &match column.align {
            Align::Right => padding + &painted,
            Align::Left => painted + &padding,
        };
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn painted(text: &str, paint: Option<&str>, style: TableStyle) -> String {
    match paint {
        Some(code) if style.color && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
        _ => text.to_owned(),
    }
}

fn workload_text(row: &Row) -> String {
    format!("{}/{}", row.workload.suite, row.workload.name)
}

fn samples_text(row: &Row) -> String {
    row.time
        .as_ref()
        .map_or(MISSING.to_owned(), |time| time.count.to_string())
}

fn speedup_text(row: &Row) -> String {
    row.speedup.as_ref().map_or(MISSING.to_owned(), bound_text)
}

/// Whether the best other says more than the baseline.
fn has_better_rival(row: &Row) -> bool {
    let best = row.against_best.as_ref().map(|best| &best.speedup);
    best.is_some_and(|best| row.speedup.as_ref() != Some(best))
}

/// Only if the speed-up does not say the same.
fn best_text(row: &Row) -> String {
    match &row.against_best {
        Some(Best { speedup, .. }) if has_better_rival(row) => {
            let Speedup {
                baseline, verdict, ..
            } = speedup;
            format!("{} {verdict} {baseline}", bound_text(speedup))
        }
        _ => MISSING.to_owned(),
    }
}

/// Ratio and half-width of its interval, which is shorter than both ends.
fn bound_text(speedup: &Speedup) -> String {
    let percent = 50.0 * (speedup.high - speedup.low) / speedup.ratio;
    let bound = if percent < 0.005 {
        "±<0.01".to_owned()
    } else {
        format!("±{percent:.2}")
    };
    format!("{} {bound} %", ratio_text(speedup.ratio))
}
