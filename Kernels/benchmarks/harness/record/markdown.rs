//! The report for people: geomeans first, then losses, then every row.

use crate::group::{by_workload, row_warnings, Baselines};
use crate::markdown_table::{cell, header, line};
use crate::number::{
    count_text, interval_text, or_missing, percent_text, ratio_text, significant, RateUnits,
    MISSING,
};
use crate::{best_groups, groups, time_us_text, Group, Meta, ResultFile, Row, Status};
use stats::Verdict;

/// The whole report as Markdown.
pub fn to_markdown(file: &ResultFile) -> String {
    let meta = &file.meta;
    let device = &meta.device;
    let mut text = format!(
        "# {} on {} (device: {})\n\n",
        cell(&meta.program),
        cell(&device.name),
        device.kind
    );
    if !meta.complete {
        text += "**Partial: the run was interrupted; missing rows were not measured.**\n\n";
    }
    text += &summary(
        "Against the best",
        "Time of the fastest baseline of each workload over ours, so above 1 we are faster",
        &best_groups(file),
    );
    text += &summary(
        "Speed-ups",
        "Baseline time over contender time, so above 1 is faster",
        &groups(file),
    );
    text += &losses(file);
    text += &not_measured(file);
    text += &rows(file);
    text += &warnings(file);
    text += &environment(meta);
    text
}

fn summary(title: &str, what: &str, groups: &[Group]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## {title}\n\n{what}: geometric mean over the suite's workloads with 95 % confidence \
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
        "faster :",
        "slower :",
        "same :",
        "ambiguous :",
        "no time :",
        "worst",
    ]);
    for group in groups {
        let mean = group.geomean.as_ref();
        let worst = group.worst.as_ref();
        text += &line(&[
            cell(&group.op),
            cell(&group.dtype),
            cell(&group.suite),
            cell(&group.contender),
            cell(&group.baseline),
            or_missing(mean.map(|mean| mean.ratio), ratio_text),
            mean.map_or(MISSING.into(), |mean| interval_text(mean.low, mean.high)),
            mean.map_or(MISSING.into(), |mean| {
                format!("{} of {}", mean.count, group.workloads())
            }),
            group.verdict_count(Verdict::Faster).to_string(),
            group.verdict_count(Verdict::Slower).to_string(),
            group.verdict_count(Verdict::Same).to_string(),
            group.verdict_count(Verdict::Ambiguous).to_string(),
            group.unpaired.values().sum::<usize>().to_string(),
            worst.map_or(MISSING.into(), |(workload, ratio)| {
                format!("{} on {}", ratio_text(*ratio), cell(workload))
            }),
        ]);
    }
    text + "\n"
}

fn losses(file: &ResultFile) -> String {
    let lost = crate::losses(file);
    let mut text = format!("## Losses: {}\n\n", count_text(lost.len(), "row"));
    if lost.is_empty() {
        return text + "No contender was slower than its baseline, nor ours than the best.\n\n";
    }
    text += &header(&[
        "op",
        "dtype",
        "workload",
        "contender",
        "baseline",
        "speed-up :",
        "95 % interval :",
    ]);
    for (row, speedup) in lost {
        text += &line(&[
            cell(&row.op),
            cell(&row.dtype),
            workload(row),
            cell(&row.contender.name),
            cell(&speedup.baseline),
            ratio_text(speedup.ratio),
            interval_text(speedup.low, speedup.high),
        ]);
    }
    text + "\n"
}

fn not_measured(file: &ResultFile) -> String {
    let without: Vec<&Row> = file
        .rows
        .iter()
        .filter(|row| row.status != Status::Ok)
        .collect();
    if without.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Without a time: {}\n\n",
        count_text(without.len(), "row")
    );
    text += &header(&["status", "op", "dtype", "workload", "contender", "reason"]);
    for row in without {
        text += &line(&[
            row.status.to_string(),
            cell(&row.op),
            cell(&row.dtype),
            workload(row),
            cell(&row.contender.name),
            cell(row.reason.as_deref().unwrap_or(MISSING)),
        ]);
    }
    text + "\n"
}

fn rows(file: &ResultFile) -> String {
    let baselines = Baselines::of(file);
    let rows = by_workload(file);
    let units = RateUnits::of(&rows);
    let mut text = String::from("## Rows\n\n");
    text += &header(&[
        "op",
        "dtype",
        "workload",
        "contender",
        "median us :",
        "p5 - p95 us :",
        "samples :",
        &format!("{} :", units.flops_title),
        &format!("{} :", units.bytes_title),
        "roof :",
        "speed-up :",
        "95 % interval :",
        "verdict",
    ]);
    for row in rows {
        let time = row.time.as_ref();
        let speedup = row.speedup.as_ref();
        let spread = time.map(|time| {
            format!(
                "{} - {}",
                time_us_text(time.p5_us),
                time_us_text(time.p95_us)
            )
        });
        text += &line(&[
            cell(&row.op),
            cell(&row.dtype),
            workload(row),
            cell(&row.contender.name),
            or_missing(time.map(|time| time.median_us), time_us_text),
            spread.unwrap_or(MISSING.into()),
            time.map_or(MISSING.into(), |time| time.count.to_string()),
            units.flops(row),
            units.bytes(row),
            or_missing(row.metrics.roof_share, percent_text),
            or_missing(speedup.map(|speedup| speedup.ratio), ratio_text),
            speedup.map_or(MISSING.into(), |speedup| {
                interval_text(speedup.low, speedup.high)
            }),
            baselines.verdict_text(row),
        ]);
    }
    text + "\n"
}

fn warnings(file: &ResultFile) -> String {
    let mut text = String::new();
    for (warning, rows) in row_warnings(file) {
        let about = match rows.as_slice() {
            [row] => format!(
                "{} {} {}",
                cell(&row.op),
                workload(row),
                cell(&row.contender.name)
            ),
            rows => count_text(rows.len(), "row"),
        };
        text += &format!("* {about}: {}\n", cell(warning));
    }
    match text.is_empty() {
        true => text,
        false => format!("## Warnings\n\n{text}\n"),
    }
}

fn environment(meta: &Meta) -> String {
    let mut facts: Vec<(&str, String)> = vec![
        (
            "device",
            format!("{} ({})", meta.device.name, meta.device.kind),
        ),
        ("build", format!("arch {}", meta.build.arch)),
    ];
    let git = meta.git.as_ref();
    let dirty = |git: &crate::Git| {
        if git.dirty {
            " with uncommitted changes"
        } else {
            ""
        }
    };
    let mut optional = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    optional("commit", git.map(|git| git.commit.clone() + dirty(git)));
    optional("driver", meta.driver.clone());
    optional("CUDA", meta.cuda.clone());
    optional("artifact lock", meta.artifact_lock_sha256.clone());
    facts.push(("host", format!("{}, {}", meta.host, meta.os)));
    let ended = meta.ended_at.as_deref().unwrap_or("interrupted");
    facts.push(("time", format!("{} to {ended}", meta.started_at)));
    let protocol = &meta.protocol;
    let name = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    facts.push((
        "protocol",
        format!(
            "{} cache, {} launch, {} timer, margin {} %, seed {}",
            name(&protocol.cache),
            name(&protocol.launch),
            name(&protocol.timer),
            (1e4 * protocol.margin).round() / 100.0,
            meta.seed
        ),
    ));
    for roof in &meta.roofs {
        facts.push((
            "roof",
            format!("{} {} {}", roof.name, significant(roof.value, 4), roof.unit),
        ));
    }
    let libraries = meta.libraries.iter();
    facts.extend(libraries.map(|library| ("library", library.to_string())));
    facts.push((
        "command",
        format!("`{}`", meta.argv.join(" ").replace('`', "'")),
    ));
    let mut text = String::from("## Environment\n\n");
    text += &header(&["what", "value"]);
    for (name, value) in facts {
        text += &line(&[name.to_owned(), cell(&value)]);
    }
    for warning in &meta.warnings {
        text += &line(&["warning".to_owned(), cell(warning)]);
    }
    text
}

fn workload(row: &Row) -> String {
    cell(&format!("{}/{}", row.workload.suite, row.workload.name))
}
