//! Speed-ups as bars with their intervals.

use super::svg::{Anchor, Svg, WIDTH};
use super::{Subject, COLOURS};
use record::{interval_text, ratio_text, Row, Speedup};
use stats::Verdict;

const BARS_MAX: usize = 60;
const LEFT: f64 = 300.0;
const RIGHT: f64 = WIDTH - 90.0;

pub fn bars(subject: &Subject) -> Option<String> {
    let mut compared: Vec<(&Row, &Speedup)> = subject
        .rows
        .iter()
        .filter_map(|row| Some((*row, row.headline()?)))
        .collect();
    if compared.is_empty() {
        return None;
    }
    let total = compared.len();
    // Too many for a picture: show the extremes.
    if total > BARS_MAX {
        compared.sort_by(|(_, left), (_, right)| left.ratio.total_cmp(&right.ratio));
        compared.drain(BARS_MAX / 2..total - BARS_MAX / 2);
    }
    let ends = compared
        .iter()
        .flat_map(|(_, speedup)| [speedup.low, speedup.high]);
    let (low, high) = ends.fold((1.0f64, 1.0f64), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let (low, high) = (low / 1.05, high * 1.05);
    let place = |ratio: f64| LEFT + (ratio / low).ln() / (high / low).ln() * (RIGHT - LEFT);
    let note = match total > BARS_MAX {
        true => format!("; lowest and highest {} of {total}", BARS_MAX / 2),
        false => String::new(),
    };
    let height = 90.0 + 18.0 * compared.len() as f64 + 30.0;
    let subtitle = format!(
        "{}; speed-up with 95 % interval, above 1 is faster{note}",
        subject.device
    );
    let mut svg = Svg::new(height, &subject.title, &subtitle);
    svg.legend(
        66.0,
        &[
            ("faster", colour(Verdict::Faster)),
            ("slower", colour(Verdict::Slower)),
            ("same or ambiguous", colour(Verdict::Same)),
        ],
    );
    let bottom = height - 22.0;
    for tick in [
        0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0,
    ] {
        if (low..=high).contains(&tick) {
            let at = place(tick);
            svg.rule(
                (at, 82.0),
                (at, bottom),
                if tick == 1.0 { 0.8 } else { 0.12 },
            );
            svg.faint_text(at, bottom + 15.0, 11.0, Anchor::Middle, &tick.to_string());
        }
    }
    for (index, (row, speedup)) in compared.iter().enumerate() {
        let y = 92.0 + 18.0 * index as f64;
        let (contender, baseline) = (&row.contender.name, &speedup.baseline);
        let name = format!(
            "{} / {baseline}  {}/{}",
            contender, row.workload.suite, row.workload.name
        );
        svg.text(LEFT - 8.0, y + 9.0, 11.0, Anchor::End, &shortened(&name));
        let (from, to) = (place(1.0), place(speedup.ratio));
        let interval = interval_text(speedup.low, speedup.high);
        let tip = format!("{name}: {} {interval}", ratio_text(speedup.ratio));
        let (left, width) = (from.min(to), (to - from).abs());
        svg.rect((left, y), (width, 12.0), colour(speedup.verdict), &tip);
        let (low, high) = (place(speedup.low), place(speedup.high));
        svg.rule((low, y + 6.0), (high, y + 6.0), 0.9);
        for end in [low, high] {
            svg.rule((end, y + 3.0), (end, y + 9.0), 0.9);
        }
        let text = ratio_text(speedup.ratio);
        svg.text(RIGHT + 12.0, y + 10.0, 11.0, Anchor::Start, &text);
    }
    Some(svg.finish())
}

fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => COLOURS[0],
        Verdict::Slower => COLOURS[5],
        Verdict::Same | Verdict::Ambiguous => COLOURS[6],
    }
}

fn shortened(name: &str) -> String {
    const FITS: usize = 46;
    match name.chars().count() > FITS {
        true => name.chars().take(FITS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
