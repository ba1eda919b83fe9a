//! The lines of a history, sorted into one series per card and comparison.

use super::{changes, Change, Point};
use crate::ReportingError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A run, as `history` writes it; lines of older programs lack what has a default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HistoryLine {
    pub commit: Option<String>,
    pub started_at: String,
    pub device: String,
    #[serde(default)]
    pub driver: Option<String>,
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Ratio, low, high.
    pub geomeans: BTreeMap<String, [f64; 3]>,
}

/// One comparison on one card, in the order of the runs.
#[derive(Debug, Clone)]
pub struct Series {
    pub device: String,
    /// `gemm bf16 llama: ours over cublaslt`.
    pub name: String,
    pub runs: Vec<HistoryLine>,
    /// Ratio, low, high of each run.
    pub ratios: Vec<[f64; 3]>,
    pub changes: Vec<Change>,
    /// Index of a run, and what is another version since then.
    pub versions: Vec<(usize, String)>,
}

/// The runs of one series, each with its ratio, low, high.
type Runs = Vec<(HistoryLine, [f64; 3])>;

/// Lines of JSON; an error names the line.
pub fn parse_lines(text: &str, origin: &str) -> Result<Vec<HistoryLine>, ReportingError> {
    let mut lines = Vec::new();
    for (index, text) in text
        .lines()
        .enumerate()
        .filter(|(_, text)| !text.trim().is_empty())
    {
        let place = format!("{origin}:{}", index + 1);
        let wrong = |problem: String| ReportingError::input(&place, problem);
        let line: HistoryLine = serde_json::from_str(text)
            .map_err(|error| wrong(format!("is not a line of history: {error}")))?;
        let names = line.geomeans.keys().chain(
            line.versions
                .iter()
                .flat_map(|(name, version)| [name, version]),
        );
        let names = names
            .chain([&line.started_at, &line.device])
            .chain(&line.commit)
            .chain(&line.driver);
        if names
            .flat_map(|name| name.chars())
            .any(|c| !record::is_plain(c))
        {
            return Err(wrong("has a control character in a name".to_owned()));
        }
        for (name, [ratio, low, high]) in &line.geomeans {
            let sound = *low > 0.0 && low <= ratio && ratio <= high && high.is_finite();
            if !sound {
                return Err(wrong(format!(
                    "'{name}' is not a ratio within its interval: {ratio} [{low}, {high}]"
                )));
            }
        }
        lines.push(line);
    }
    Ok(lines)
}

/// All series, those with changes first. A run that is there twice counts once.
pub fn series(mut lines: Vec<HistoryLine>) -> Vec<Series> {
    lines.sort_by(|left, right| left.started_at.cmp(&right.started_at));
    let mut by_name: BTreeMap<(String, String), Runs> = BTreeMap::new();
    for line in lines {
        let HistoryLine { geomeans, .. } = &line;
        let bare = HistoryLine {
            geomeans: BTreeMap::new(),
            ..line.clone()
        };
        for (name, ratio) in geomeans {
            let runs = by_name
                .entry((line.device.clone(), name.clone()))
                .or_default();
            let again = runs.last().is_some_and(|(last, _)| {
                (&last.started_at, &last.commit) == (&line.started_at, &line.commit)
            });
            if !again {
                runs.push((bare.clone(), *ratio));
            }
        }
    }
    let of = |((device, name), runs): ((String, String), Runs)| {
        let (runs, ratios): (Vec<HistoryLine>, Vec<[f64; 3]>) = runs.into_iter().unzip();
        let point = |[ratio, low, high]: &[f64; 3]| Point {
            log: ratio.ln(),
            error: (high / low).ln() / (2.0 * 1.96),
        };
        let points: Vec<Point> = ratios.iter().map(point).collect();
        Series {
            changes: changes(&points),
            versions: new_versions(&name, &runs),
            device,
            name,
            runs,
            ratios,
        }
    };
    let mut all: Vec<Series> = by_name.into_iter().map(of).collect();
    all.sort_by_key(|series| series.changes.is_empty());
    all
}

/// Where a contender of the comparison, or the driver, is another version than in the run before.
fn new_versions(name: &str, runs: &[HistoryLine]) -> Vec<(usize, String)> {
    let sides = name
        .rsplit_once(": ")
        .and_then(|(_, sides)| sides.split_once(" over "));
    let takes_part = |contender: &str| {
        sides.is_none_or(|(own, other)| {
            other == record::BEST || own == contender || other == contender
        })
    };
    let mut found = Vec::new();
    for (index, pair) in runs.windows(2).enumerate() {
        let mut note = |what: &str, before: Option<&String>, after: Option<&String>| {
            if let (Some(before), Some(after)) = (before, after) {
                if before != after {
                    found.push((index + 1, format!("{what} {before} -> {after}")));
                }
            }
        };
        note("driver", pair[0].driver.as_ref(), pair[1].driver.as_ref());
        for (contender, after) in pair[1]
            .versions
            .iter()
            .filter(|(contender, _)| takes_part(contender))
        {
            note(contender, pair[0].versions.get(contender), Some(after));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(day: usize, ratio: f64, version: &str) -> HistoryLine {
        let text = format!(
            "{{\"commit\": \"c{day}\", \"started_at\": \"2026-01-{day:02}T00:00:00Z\", \"device\": \"H200\", \
             \"driver\": \"580\", \"versions\": {{\"quack\": \"{version}\", \"liger\": \"{day}\"}}, \
             \"geomeans\": {{\"op bf16 s: ours over quack\": [{ratio}, {}, {}]}}}}",
            ratio * 0.999,
            ratio * 1.001
        );
        parse_lines(&text, "x").unwrap().remove(0)
    }

    #[test]
    fn a_series_has_its_change_and_the_version_that_explains_it() {
        let wobble = |day: usize| 1.0 + 0.002 * ((day * 7 % 5) as f64 - 2.0) / 2.0;
        let lines = |step: f64| -> Vec<HistoryLine> {
            let new = |day| day > 12;
            let level = |day| if new(day) { 1.2 * step } else { 1.2 };
            (1..=24)
                .map(|day| {
                    line(
                        day,
                        level(day) * wobble(day),
                        if new(day) { "2" } else { "1" },
                    )
                })
                .collect()
        };
        let mut shuffled = lines(0.97);
        shuffled.reverse();
        shuffled.push(shuffled[3].clone());
        let all = series(shuffled);
        assert_eq!((all.len(), all[0].runs.len()), (1, 24));
        assert_eq!(all[0].versions, [(12, "quack 1 -> 2".to_owned())]);
        assert_eq!(all[0].changes.len(), 1);
        let change = all[0].changes[0];
        assert_eq!(change.at, 12);
        assert!(
            ((change.after - change.before).exp() - 0.97).abs() < 0.002,
            "{change:?}"
        );
        assert!(series(lines(1.0))[0].changes.is_empty());
    }

    #[test]
    fn a_wrong_line_is_named() {
        let good = "{\"commit\": null, \"started_at\": \"2026\", \"device\": \"H200\", \
                    \"geomeans\": {\"a\": [1, 1, 1]}}";
        assert_eq!(
            parse_lines(&format!("{good}\n\n{good}\n"), "h")
                .unwrap()
                .len(),
            2
        );
        for (wrong, why) in [
            ("{}", "missing field"),
            ("[1]", "not a line of history"),
            (
                &*good.replace("[1, 1, 1]", "[1, 2, 3]"),
                "within its interval",
            ),
            (
                &*good.replace("[1, 1, 1]", "[1, 0, 3]"),
                "within its interval",
            ),
            (&*good.replace("H200", "H\\u001b200"), "control character"),
        ] {
            let told = parse_lines(&format!("{good}\n{wrong}\n"), "h")
                .unwrap_err()
                .to_string();
            assert!(told.starts_with("h:2: ") && told.contains(why), "{told}");
        }
    }
}
