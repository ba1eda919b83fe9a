//! What stands below the table: geomeans, controls, reasons and warnings.

use super::{paint_of, painted, workload_text, TableStyle, BOLD, GREEN, RED, RED_BOLD, YELLOW};
use crate::group::row_warnings;
use crate::number::{count_text, interval_text, ratio_text, MISSING};
use crate::{controls, Group, ResultFile, Row, Status};
use stats::Verdict;

pub(super) fn group_line(group: &Group, style: TableStyle) -> String {
    let Group {
        op,
        dtype,
        suite,
        contender,
        baseline,
        ..
    } = group;
    let mut text = format!("{op} {dtype} {suite}: {contender} vs {baseline}");
    if let Some(mean) = &group.geomean {
        let interval = interval_text(mean.low, mean.high);
        let of = match group.workloads() {
            all if all == mean.count => count_text(all, "workload"),
            all => format!("{} of {}", mean.count, count_text(all, "workload")),
        };
        let ratio = painted(&format!("{}x", ratio_text(mean.ratio)), Some(BOLD), style);
        text += &format!("\n  geomean {ratio} {interval} over {of}");
    }
    let counts = [
        (Verdict::Faster, Some(GREEN)),
        (Verdict::Slower, Some(RED)),
        (Verdict::Same, None),
        (Verdict::Ambiguous, Some(YELLOW)),
    ]
    .map(|(verdict, paint)| {
        let count = group.verdict_count(verdict);
        painted(
            &format!("{count} {verdict}"),
            paint.filter(|_| count > 0),
            style,
        )
    });
    text += &format!("\n  {}", counts.join(", "));
    for (status, count) in &group.unpaired {
        text += &match status {
            Status::Ok => format!(", {count} without a baseline time"),
            status => format!(", {count} {status}"),
        };
    }
    if let Some((workload, ratio)) = &group.worst {
        text += &format!("; worst {}x on {workload}", ratio_text(*ratio));
    }
    text + "\n"
}

/// How contenders did against themselves.
pub(super) fn controls_line(file: &ResultFile, style: TableStyle) -> String {
    let verdicts: Vec<Verdict> = controls(file)
        .filter_map(|row| Some(row.speedup.as_ref()?.verdict))
        .collect();
    if verdicts.is_empty() {
        return String::new();
    }
    let same = verdicts.iter().filter(|it| **it == Verdict::Same).count();
    let paint = if same == verdicts.len() {
        GREEN
    } else {
        RED_BOLD
    };
    let text = format!("{same} of {} same", verdicts.len());
    let text = painted(&text, Some(paint), style);
    format!("the same contender twice: {text}\n")
}

/// Why rows have no time, and what to know about the others and the whole run.
pub(super) fn reasons(file: &ResultFile, style: TableStyle) -> String {
    let place = |row: &Row| format!("{} {} {}", row.op, workload_text(row), row.contender.name);
    let warning = painted("warning", Some(YELLOW), style);
    let mut lines = Vec::new();
    for row in file.rows.iter().filter(|row| row.status != Status::Ok) {
        let status = painted(&row.status.to_string(), paint_of(row), style);
        let reason = row.reason.as_deref().unwrap_or(MISSING);
        lines.push(format!("{status}: {}: {reason}", place(row)));
    }
    for (text, rows) in row_warnings(file) {
        let about = match rows.as_slice() {
            [row] => place(row),
            rows => count_text(rows.len(), "row"),
        };
        lines.push(format!("{warning}: {about}: {text}"));
    }
    lines.extend(
        file.meta
            .warnings
            .iter()
            .map(|text| format!("{warning}: {text}")),
    );
    let text: String = lines
        .into_iter()
        .map(|line| line.replace(['\n', '\r'], " ") + "\n")
        .collect();
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}
