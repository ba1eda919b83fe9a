//! The trends as a page that fetches nothing and runs nothing, and as JSON.

use super::{Series, RUNS_MIN};
use crate::plot::picture::Picture;
use crate::plot::tile::{escaped, About, Anchor, Look, Tile, WIDTH};
use crate::policy::content_policy;
use record::{interval_text, ratio_text};
use serde_json::{json, Value};

const STYLE: &str = "body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1500px; padding: 1rem; }
figure { display: inline-block; margin: 0.5rem; max-width: 100%; }
figure svg { height: auto; max-width: 100%; }
table { border-collapse: collapse; }
td, th { border-bottom: 1px solid #8885; padding: 0.2rem 0.8rem; text-align: left; }
@media (prefers-color-scheme: dark) {
  body, figure svg { background: #14181d; color: #e6e9ec; }
  figure svg .paper { fill: #14181d; }
}
";
const TOP: f64 = 20.0;
const BOTTOM: f64 = 180.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 10.0;
const LINE: &str = "#0072b2";
const LOOK: Look = Look {
    colour: LINE,
    square: false,
};
const CHANGE: &str = "#d55e00";
const VERSION: &str = "#e69f00";

pub fn history_page(all: &[Series]) -> String {
    let changed: Vec<&Series> = all
        .iter()
        .filter(|series| !series.changes.is_empty())
        .collect();
    let short = all
        .iter()
        .filter(|series| series.runs.len() < RUNS_MIN)
        .count();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Head-to-Head: history</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>History</h1>\n",
        content_policy(&[], STYLE)
    );
    html += &format!(
        "<p>{} of {} comparisons changed. A change is beyond noise at the level of 1 %: of 100 series \
         without one, about one shows one.",
        changed.len(),
        all.len()
    );
    if short > 0 {
        html += &format!(" {short} have fewer than {RUNS_MIN} runs, too few to tell.");
    }
    html += "</p>\n";
    if !changed.is_empty() {
        html += "<table><thead><tr><th>card<th>comparison<th>since<th>commit<th>from<th>to\
                 <th>new versions</tr></thead><tbody>\n";
        for series in &changed {
            html += &series
                .changes
                .iter()
                .map(|change| table_line(series, change))
                .collect::<String>();
        }
        html += "</tbody></table>\n";
    }
    for series in all {
        let title = escaped(&format!("{}, {}", series.name, series.device));
        html += &format!(
            "<figure aria-label=\"{title}\">{}</figure>\n",
            picture(series)
        );
    }
    html + "</body>\n</html>\n"
}

fn table_line(series: &Series, change: &super::Change) -> String {
    let run = &series.runs[change.at];
    let versions = series.versions.iter().filter(|(at, _)| *at == change.at);
    let versions: Vec<&str> = versions.map(|(_, text)| text.as_str()).collect();
    let commit: String = run
        .commit
        .as_deref()
        .unwrap_or("unknown")
        .chars()
        .take(12)
        .collect();
    format!(
        "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>\n",
        escaped(&series.device),
        escaped(&series.name),
        escaped(&run.started_at),
        escaped(&commit),
        ratio_text(change.before.exp()),
        ratio_text(change.after.exp()),
        escaped(&versions.join(", ")),
    )
}

fn picture(series: &Series) -> String {
    let mut tile = Tile::new("", BOTTOM + 26.0);
    let about = |tip: &str| About {
        tip: tip.to_owned(),
        row: None,
    };
    let ends = series
        .ratios
        .iter()
        .flat_map(|[_, low, high]| [*low, *high]);
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let room = ((high - low) * 0.1).max(high * 0.002);
    let (low, high) = (low - room, high + room);
    let y = |ratio: f64| BOTTOM - (ratio - low) / (high - low) * (BOTTOM - TOP);
    let step = (RIGHT - LEFT) / series.runs.len() as f64;
    let x = |run: usize| LEFT + step * (run as f64 + 0.5);
    for share in [0.0, 0.5, 1.0] {
        let ratio = low + share * (high - low);
        tile.rules(&[((LEFT, y(ratio)), (RIGHT, y(ratio)))], 0.15);
        tile.faint_text(
            (LEFT - 6.0, y(ratio) + 4.0),
            Anchor::End,
            &ratio_text(ratio),
        );
    }
    for (at, text) in &series.versions {
        let edge = x(*at) - step / 2.0;
        tile.path(&[(edge, TOP), (edge, BOTTOM)], VERSION, 1.0, false);
        tile.rect((edge - 2.0, BOTTOM), (4.0, 6.0), VERSION, about(text));
    }
    let starts: Vec<usize> = std::iter::once(0)
        .chain(series.changes.iter().map(|change| change.at))
        .collect();
    for (place, from) in starts.iter().enumerate() {
        let to = starts.get(place + 1).copied().unwrap_or(series.runs.len());
        let before = series.changes.first().map(|change| change.before);
        let level = if place == 0 {
            before
        } else {
            Some(series.changes[place - 1].after)
        };
        if let Some(level) = level {
            let ends = (x(*from) - step / 2.0, x(to) - step / 2.0);
            let height = y(level.exp());
            tile.path(&[(ends.0, height), (ends.1, height)], CHANGE, 2.0, false);
        }
    }
    for (run, [ratio, low, high]) in series.ratios.iter().enumerate() {
        let line = &series.runs[run];
        let commit = line.commit.as_deref().unwrap_or("unknown");
        let tip = format!(
            "{} {commit}: {} {}",
            line.started_at,
            ratio_text(*ratio),
            interval_text(*low, *high)
        );
        tile.path(&[(x(run), y(*low)), (x(run), y(*high))], LINE, 1.0, false);
        tile.dot((x(run), y(*ratio)), LOOK, about(&tip));
    }
    let day = |run: &super::HistoryLine| run.started_at.chars().take(10).collect::<String>();
    if let (Some(first), Some(last)) = (series.runs.first(), series.runs.last()) {
        tile.faint_text((LEFT, BOTTOM + 20.0), Anchor::Start, &day(first));
        tile.faint_text((RIGHT, BOTTOM + 20.0), Anchor::End, &day(last));
    }
    let picture = Picture {
        title: series.name.clone(),
        subtitle: series.device.clone(),
        legend: Vec::new(),
        tiles: vec![tile],
    };
    picture.to_svg()
}

pub fn history_json(all: &[Series]) -> Value {
    let of = |series: &Series| {
        let run = |(line, [ratio, low, high]): (&super::HistoryLine, &[f64; 3])| {
            let (started_at, commit) = (&line.started_at, &line.commit);
            json!({"started_at": started_at, "commit": commit, "ratio": ratio, "low": low, "high": high})
        };
        let change = |change: &super::Change| {
            let run = &series.runs[change.at];
            json!({"started_at": run.started_at, "commit": run.commit, "before": change.before.exp(),
                "after": change.after.exp(), "p": change.p})
        };
        let version = |(at, text): &(usize, String)| json!({"started_at": series.runs[*at].started_at, "what": text});
        json!({
            "device": series.device,
            "name": series.name,
            "enough_runs": series.runs.len() >= RUNS_MIN,
            "runs": series.runs.iter().zip(&series.ratios).map(run).collect::<Vec<_>>(),
            "changes": series.changes.iter().map(change).collect::<Vec<_>>(),
            "versions": series.versions.iter().map(version).collect::<Vec<_>>(),
        })
    };
    json!({"history": 1, "series": all.iter().map(of).collect::<Vec<_>>()})
}
