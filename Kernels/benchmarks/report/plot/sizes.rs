//! Time and rate by workload size.

use super::axis::{frame, LogScale, LEFT, RIGHT};
use super::svg::{Anchor, Svg};
use super::{bytes, median_us, Subject};
use record::{significant, time_us_text, Row};

/// Series with more points are thinned out evenly; nobody sees the difference.
const POINTS_MAX: usize = 400;
const TOP: f64 = 100.0;
const BOTTOM: f64 = 370.0;

pub fn latency(subject: &Subject) -> Option<String> {
    draw(
        subject,
        "median time, us (bars: 5 % to 95 %)",
        None,
        |row| {
            let time = row.time.as_ref()?;
            Some((time.p5_us, time.median_us, time.p95_us))
        },
    )
}

/// In the unit of the roof that is closer for most rows.
pub fn throughput(subject: &Subject) -> Option<String> {
    let memory = |row: &&&Row| {
        let roof = row.metrics.roof.as_deref();
        roof.is_none_or(|name| name.starts_with("hbm") || name.starts_with("memory"))
    };
    let of_memory = subject.rows.iter().filter(memory).count();
    let (title, rate): (&str, fn(&Row) -> Option<f64>) = match of_memory * 2 >= subject.rows.len() {
        true => ("TB/s of logical input and output", |row| row.metrics.tbps),
        false => ("TFLOP/s", |row| row.metrics.tflops),
    };
    // The roof as the rows saw it: their rate over their share of it.
    let mut roofs: Vec<f64> = subject
        .rows
        .iter()
        .filter_map(|row| Some(rate(row)? / row.metrics.roof_share.filter(|share| *share > 0.0)?))
        .collect();
    roofs.sort_by(f64::total_cmp);
    let roof = roofs.get(roofs.len() / 2).copied();
    draw(subject, title, roof, |row| {
        let rate = rate(row)?;
        Some((rate, rate, rate))
    })
}

fn draw(
    subject: &Subject,
    y_title: &str,
    roof: Option<f64>,
    of: impl Fn(&Row) -> Option<(f64, f64, f64)>,
) -> Option<String> {
    let point = |row: &&Row| Some((bytes(row)? / 1e6, of(row)?));
    let all: Vec<(f64, (f64, f64, f64))> = subject.rows.iter().filter_map(point).collect();
    let x = LogScale::over(all.iter().map(|(x, _)| *x), LEFT, RIGHT)?;
    let values = all.iter().flat_map(|(_, (low, _, high))| [*low, *high]);
    let y = LogScale::over(values.chain(roof), BOTTOM, TOP)?;
    let mut svg = Svg::new(420.0, &subject.title, subject.device);
    let series = subject.series();
    let names: Vec<(&str, &str)> = series
        .iter()
        .map(|(name, colour, _)| (*name, *colour))
        .collect();
    frame(&mut svg, x, y, "logical bytes of the workload, MB", y_title);
    if let Some(roof) = roof {
        let at = y.place(roof);
        svg.line((LEFT, at), (RIGHT, at), "#d55e00", 1.0);
        let text = format!("measured roof {}", significant(roof, 4));
        svg.faint_text(LEFT + 6.0, at - 5.0, 11.0, Anchor::Start, &text);
    }
    for (name, colour, rows) in &series {
        let mut points: Vec<(f64, (f64, f64, f64), &Row)> = rows
            .iter()
            .filter_map(|row| Some((bytes(row)? / 1e6, of(row)?, *row)))
            .collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        let step = points.len().div_ceil(POINTS_MAX).max(1);
        for (size, (low, middle, high), row) in points.into_iter().step_by(step) {
            let at = x.place(size);
            if high > low {
                svg.line((at, y.place(low)), (at, y.place(high)), colour, 1.0);
            }
            let tip = format!(
                "{name} {}/{}: {} us",
                row.workload.suite,
                row.workload.name,
                time_us_text(median_us(row))
            );
            svg.dot((at, y.place(middle)), colour, &tip);
        }
    }
    svg.legend_below(&names);
    Some(svg.finish())
}
