//! The short report: the scoreboard and the losses, then what was measured where, by suite, and what failed.

use crate::releases::releases_markdown;
use crate::scoreboard::scoreboard_markdown;
use crate::View;
use record::markdown_table::{cell, header, line};
use record::{
    best_groups, count_text, groups, interval_text, percent_text, ratio_text, Group, Row, RowKey,
    Status,
};
use stats::{geomean, typical_spread, Verdict, SPREAD_BETWEEN_PROCESSES};
use std::collections::{BTreeMap, HashMap};

/// The most failures to list; the rest are counted.
const LISTED: usize = 40;

/// Markdown, short enough for a step summary.
pub fn summarize(views: &[View]) -> String {
    let mut text = "# Head-to-Head results\n\n".to_owned();
    for view in views {
        text += &scoreboard_markdown(view);
    }
    text += &overview(views);
    for view in views {
        text += &controls(view);
        text += &format!("## {} by suite\n\n", cell(&view.title));
        if !view.file.meta.complete {
            text += "**Partial: a run was interrupted; missing rows were not measured.**\n\n";
        }
        text += &table_of(
            "Against the best other contender",
            "Time of the fastest baseline of each workload over ours, so above 1 we are faster",
            &best_groups(&view.file),
        );
        text += &table_of(
            "Speed-ups",
            "Baseline time over contender time, so above 1 is faster",
            &groups(&view.file),
        );
        text += &releases_markdown(view);
        text += &roof_shares(view);
        text += &failures(view);
    }
    text + &across(views)
}

fn overview(views: &[View]) -> String {
    let mut text = header(&[
        "device",
        "programs",
        "rows :",
        "ok :",
        "unsupported :",
        "failed :",
        "faster :",
        "slower :",
        "same :",
        "ambiguous :",
        "commit",
        "driver",
    ]);
    for view in views {
        let (meta, rows) = (&view.file.meta, &view.file.rows);
        let status = |of: fn(Status) -> bool| rows.iter().filter(|row| of(row.status)).count();
        let verdict = |verdict| {
            let best = rows.iter().filter_map(|row| row.against_best.as_ref());
            let of = best.filter(|best| best.speedup.verdict == verdict);
            of.count().to_string()
        };
        let commit = meta.git.as_ref().map_or("unknown".to_owned(), |git| {
            let short: String = git.commit.chars().take(10).collect();
            format!("{short}{}", if git.dirty { " (dirty)" } else { "" })
        });
        text += &line(&[
            cell(&view.title),
            cell(&meta.program),
            rows.len().to_string(),
            status(|status| status == Status::Ok).to_string(),
            status(|status| status == Status::Unsupported).to_string(),
            status(Status::is_failure).to_string(),
            verdict(Verdict::Faster),
            verdict(Verdict::Slower),
            verdict(Verdict::Same),
            verdict(Verdict::Ambiguous),
            commit,
            cell(meta.driver.as_deref().unwrap_or("-")),
        ]);
    }
    text + "\n"
}

/// What the run makes of no difference; nothing without controls.
fn controls(view: &View) -> String {
    let rows: Vec<&Row> = record::controls(&view.file).collect();
    if rows.is_empty() {
        return String::new();
    }
    let verdicts = rows.iter().filter_map(|row| row.speedup.as_ref());
    let same = verdicts.filter(|speedup| speedup.verdict == Verdict::Same);
    let mut text = format!(
        "## The same contender twice: {} of {} the same, {} different, {}\n\n",
        same.count(),
        rows.len(),
        crate::odd_controls(&view.file).len(),
        cell(&view.title)
    );
    text += &header(&["row", "ratio :", "95 % interval :", "verdict"]);
    for row in rows {
        let (ratio, interval, verdict) = match &row.speedup {
            Some(speedup) => (
                ratio_text(speedup.ratio),
                interval_text(speedup.low, speedup.high),
                speedup.verdict.to_string(),
            ),
            None => ("-".into(), "-".into(), row.status.to_string()),
        };
        text += &line(&[cell(&RowKey::of(row).to_string()), ratio, interval, verdict]);
    }
    text + "\n" + &spread(view)
}

/// Whether processes are as far apart as the intervals expect.
fn spread(view: &View) -> String {
    let spreads = record::process_spreads(&view.file);
    typical_spread(&spreads).map_or(String::new(), |typical| {
        format!(
            "Between processes, ratios to the best other differ by {} (standard deviation beyond what \
            rounds explain, median of {}); intervals expect {}.\n\n",
            percent_text(typical),
            count_text(spreads.len(), "ratio"),
            percent_text(SPREAD_BETWEEN_PROCESSES),
        )
    })
}

fn table_of(title: &str, what: &str, groups: &[Group]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "### {title}\n\n{what}: geometric mean over the suite's workloads with 95 % confidence \
        interval.\n\n",
    );
    text += &header(&[
        "op",
        "dtype",
        "suite",
        "contender",
        "baseline",
        "geomean :",
        "95 % interval :",
        "workloads :",
        "faster / same / slower / ambiguous",
        "worst",
    ]);
    for group in groups {
        let Some(mean) = &group.geomean else { continue };
        let counts = [
            Verdict::Faster,
            Verdict::Same,
            Verdict::Slower,
            Verdict::Ambiguous,
        ];
        let counts = counts.map(|verdict| group.verdict_count(verdict).to_string());
        let worst = group.worst.as_ref().map_or(String::new(), |(name, ratio)| {
            format!("{} on {}", ratio_text(*ratio), cell(name))
        });
        text += &line(&[
            cell(&group.op),
            cell(&group.dtype),
            cell(&group.suite),
            cell(&group.contender),
            cell(&group.baseline),
            ratio_text(mean.ratio),
            interval_text(mean.low, mean.high),
            format!("{} of {}", mean.count, group.workloads()),
            counts.join(" / "),
            worst,
        ]);
    }
    text + "\n"
}

/// Shares of the measured roofs: the whole story if there is no baseline.
fn roof_shares(view: &View) -> String {
    let mut shares: BTreeMap<(&str, &str, &str, &str), Vec<f64>> = BTreeMap::new();
    for row in &view.file.rows {
        if let Some(share) = row.metrics.roof_share {
            let place = (
                &*row.op,
                &*row.dtype,
                &*row.workload.suite,
                &*row.contender.name,
            );
            shares.entry(place).or_default().push(share);
        }
    }
    if shares.is_empty() {
        return String::new();
    }
    let mut text = "### Share of the measured roof\n\n".to_owned();
    text += &header(&[
        "op",
        "dtype",
        "suite",
        "contender",
        "workloads :",
        "median :",
        "min :",
        "max :",
    ]);
    for ((op, dtype, suite, contender), mut shares) in shares {
        shares.sort_by(f64::total_cmp);
        text += &line(&[
            cell(op),
            cell(dtype),
            cell(suite),
            cell(contender),
            shares.len().to_string(),
            percent_text(stats::quantile(&shares, 0.5)),
            percent_text(shares[0]),
            percent_text(shares[shares.len() - 1]),
        ]);
    }
    text + "\n"
}

fn failures(view: &View) -> String {
    let failed: Vec<&Row> = view
        .file
        .rows
        .iter()
        .filter(|row| row.status.is_failure())
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    let mut text = format!("### Failures: {}\n\n", count_text(failed.len(), "row"));
    text += &header(&["status", "row", "reason"]);
    for row in failed.iter().take(LISTED) {
        text += &line(&[
            row.status.to_string(),
            cell(&RowKey::of(row).to_string()),
            cell(row.reason.as_deref().unwrap_or("-")),
        ]);
    }
    text + &rest(failed.len())
}

fn rest(count: usize) -> String {
    match count.checked_sub(LISTED) {
        Some(more) if more > 0 => format!("\nand {more} more; the HTML report has them all.\n\n"),
        _ => "\n".to_owned(),
    }
}

type Contest = (String, String, String, String);

/// The same rows on two devices: geometric mean of the ratio of times.
fn across(views: &[View]) -> String {
    let mut text = String::new();
    for (index, first) in views.iter().enumerate() {
        for second in &views[index + 1..] {
            if first.file.meta.device.name != second.file.meta.device.name {
                text += &across_two(first, second);
            }
        }
    }
    text
}

fn across_two(first: &View, second: &View) -> String {
    let times = |view: &View| -> HashMap<RowKey, f64> {
        let timed = |row: &Row| Some((RowKey::of(row), row.time.as_ref()?.median_us));
        view.file.rows.iter().filter_map(timed).collect()
    };
    let others = times(second);
    let mut ratios: BTreeMap<Contest, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for (key, time_us) in times(first) {
        if let Some(other_us) = others.get(&key) {
            let ratio = time_us / other_us;
            let contest = (key.op, key.dtype, key.suite, key.contender);
            ratios
                .entry(contest)
                .or_default()
                .push((ratio, ratio, ratio));
        }
    }
    if ratios.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## {} against {}\n\nTime on the first over time on the second, so above 1 the second is \
        faster. Runs on two machines are not paired, so there is no interval.\n\n",
        cell(&first.title),
        cell(&second.title)
    );
    text += &header(&[
        "op",
        "dtype",
        "suite",
        "contender",
        "geomean :",
        "min :",
        "max :",
        "workloads :",
    ]);
    for ((op, dtype, suite, contender), ratios) in ratios {
        let Some(mean) = geomean(&ratios) else {
            continue;
        };
        let values = || ratios.iter().map(|(ratio, ..)| *ratio);
        text += &line(&[
            cell(&op),
            cell(&dtype),
            cell(&suite),
            cell(&contender),
            ratio_text(mean.ratio),
            ratio_text(values().fold(f64::INFINITY, f64::min)),
            ratio_text(values().fold(0.0, f64::max)),
            mean.count.to_string(),
        ]);
    }
    text + "\n"
}
