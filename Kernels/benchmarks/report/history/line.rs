//! A run as one line of an append-only history, and the contenders that a run must have measured.

use crate::View;
use record::{best_groups, groups, Row};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;

/// One object per device, build and protocol: when, what, where, and every geomean with its interval.
pub fn history(views: &[View]) -> Vec<Value> {
    views.iter().map(entry).collect()
}

fn entry(view: &View) -> Value {
    let (meta, rows) = (&view.file.meta, &view.file.rows);
    let best = best_groups(&view.file).into_iter();
    let geomeans: Map<String, Value> = best
        .chain(groups(&view.file))
        .filter_map(|group| {
            let mean = group.geomean?;
            let (op, dtype, suite) = (group.op, group.dtype, group.suite);
            let name = format!(
                "{op} {dtype} {suite}: {} over {}",
                group.contender, group.baseline
            );
            Some((name, json!([mean.ratio, mean.low, mean.high])))
        })
        .collect();
    let versions: BTreeMap<&str, &str> = rows
        .iter()
        .filter(|row| row.time.is_some())
        .map(|row| (&*row.contender.name, &*row.contender.version))
        .collect();
    json!({
        "commit": meta.git.as_ref().map(|git| &git.commit),
        "dirty": meta.git.as_ref().map(|git| git.dirty),
        "started_at": meta.started_at,
        "device": meta.device.name,
        "driver": meta.driver,
        "artifact_lock_sha256": meta.artifact_lock_sha256,
        "complete": meta.complete,
        "rows": rows.len(),
        "failed": rows.iter().filter(|row| row.status.is_failure()).count(),
        "versions": versions,
        "geomeans": geomeans,
    })
}

/// One sentence for each contender without a time in any row: if a library cannot be loaded, all of its rows are
/// `unsupported`, which would otherwise pass.
pub fn unmeasured(views: &[View], contenders: &[String]) -> Vec<String> {
    let all = || views.iter().flat_map(|view| &view.file.rows);
    let of = |name: &String| {
        let mut rows = all().filter(|row| row.contender.name == *name).peekable();
        if rows.peek().is_none() {
            return Some(format!("{name} has no rows"));
        }
        let rows: Vec<&Row> = rows.collect();
        if rows.iter().any(|row| row.time.is_some()) {
            return None;
        }
        let reason = rows.iter().find_map(|row| row.reason.as_deref());
        let reason = reason.unwrap_or("no reason given");
        let count = record::count_text(rows.len(), "row");
        Some(format!("{name} has no time in {count}: {reason}"))
    };
    contenders.iter().filter_map(of).collect()
}
