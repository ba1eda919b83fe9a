//! One line per suite: what we reach, and everybody's time over ours.

use super::plan::{Show, Table};
use super::races::{Published, Race, Races};
use record::markdown_table::{cell, header, line};
use record::{significant, Row};
use std::collections::{BTreeMap, BTreeSet};

/// Placeholder where nothing was measured.
const MISSING: &str = "-";

pub fn table(table: &Table, races: &Races) -> Result<String, String> {
    let all = races.of_table(table)?;
    let mut titles = vec![&*table.title];
    for column in &table.columns {
        if let Show::Against(name) = &column.show {
            if !all.iter().any(|race| race.timed(name).is_some()) {
                return Err(format!(
                    "table '{}': {name} has no time in any row",
                    table.name
                ));
            }
        }
        titles.push(&column.title);
    }
    let mut text = header(&titles);
    for selection in &table.rows {
        let races = races.of(selection)?;
        let mut cells = vec![cell(&selection.title)];
        cells.extend(table.columns.iter().map(|column| match &column.show {
            Show::Tflops => range(&ours(&races, |row| row.metrics.tflops)),
            Show::Tbps => range(&ours(&races, |row| row.metrics.tbps)),
            Show::RoofShare => roof_share(&races),
            Show::Against(name) => against(&races, |race| race.ratio(name)),
            Show::BestWithPlan(layers) => against(&races, |race| race.ratio_with_plan(*layers)),
        }));
        text += &line(&cells);
    }
    Ok(text)
}

fn ours(races: &[&Race], metric: fn(&Row) -> Option<f64>) -> Vec<f64> {
    let rows = races.iter().filter_map(|race| race.ours());
    rows.filter_map(metric).collect()
}

fn ends(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

fn range(values: &[f64]) -> String {
    let (least, most) = ends(values);
    match values.len() {
        0 => MISSING.to_owned(),
        1 => significant(most, 3),
        _ => format!("{} to {}", significant(least, 3), significant(most, 3)),
    }
}

/// Geometric mean, with minimum and maximum in brackets.
fn spread(values: &[f64], text: fn(f64) -> String, unit: &str) -> String {
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    let (least, most) = ends(values);
    match values.len() {
        0 => MISSING.to_owned(),
        1 => text(most) + unit,
        _ => format!(
            "{}{unit} ({} to {})",
            text(mean.exp()),
            text(least),
            text(most)
        ),
    }
}

/// The same for a time over ours, with the number of workloads if not all have one.
fn against(races: &[&Race], ratio: impl Fn(&Race) -> Option<f64>) -> String {
    let ratios: Vec<f64> = races.iter().filter_map(|race| ratio(race)).collect();
    let text = spread(&ratios, |ratio| format!("{ratio:.2}"), "");
    match ratios.len() {
        count if count == 0 || count == races.len() => text,
        count => format!("{text}, {count} of {}", races.len()),
    }
}

fn roof_share(races: &[&Race]) -> String {
    let shares = ours(races, |row| row.metrics.roof_share);
    let mut roofs: BTreeMap<&str, usize> = BTreeMap::new();
    for row in races.iter().filter_map(|race| race.ours()) {
        *roofs
            .entry(row.metrics.roof.as_deref().map_or("", roof_name))
            .or_default() += 1;
    }
    let mut roofs: Vec<(&str, usize)> = roofs
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
        .collect();
    roofs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let roofs: Vec<&str> = roofs.into_iter().map(|(name, _)| name).collect();
    let text = spread(&shares, percent, " %");
    match roofs.is_empty() {
        true => text,
        false => format!("{text} of {}", roofs.join(", ")),
    }
}

/// Whole percent; small shares keep their first digit.
fn percent(share: f64) -> String {
    match 100.0 * share {
        small if small < 9.5 => significant(small, 1),
        percent => format!("{percent:.0}"),
    }
}

/// `hbm_copy` is the copy roof, `tensor_bf16` that of the tensor cores.
fn roof_name(roof: &str) -> &str {
    match roof.strip_prefix("hbm_") {
        Some(rest) => rest,
        None if roof.starts_with("tensor") => "tensor cores",
        None => roof,
    }
}

pub fn roofs(published: &Published) -> String {
    let mut text = header(&["roof", "measured :"]);
    let mut seen = Vec::new();
    let runs = published.all().flat_map(|races| &races.runs);
    for roof in runs.flat_map(|(_, meta, _)| &meta.roofs) {
        if !seen.contains(&&roof.name) {
            let value = format!("{} {}", significant(roof.value, 4), roof.unit);
            text += &line(&[cell(&roof.name), value]);
            seen.push(&roof.name);
        }
    }
    text
}

/// Where the rows come from.
pub fn runs(published: &Published) -> String {
    let mut text = header(&["run", "rows :", "started", "device", "driver", "commit"]);
    let mut seen = BTreeSet::new();
    let runs = published.all().flat_map(|races| &races.runs);
    for (origin, meta, rows) in
        runs.filter(|(origin, meta, _)| seen.insert((origin, &meta.started_at)))
    {
        let commit = meta.git.as_ref().map_or(MISSING.to_owned(), |git| {
            let short: String = git.commit.chars().take(8).collect();
            format!("`{short}`{}", if git.dirty { " (dirty)" } else { "" })
        });
        text += &line(&[
            format!("`{}`", cell(origin)),
            rows.to_string(),
            meta.started_at.clone(),
            cell(&meta.device.name),
            cell(meta.driver.as_deref().unwrap_or(MISSING)),
            commit,
        ]);
    }
    text
}
