//! What a race says to whoever is waiting for it: one line per workload and own contender.

use std::collections::HashMap;

use guest::Source;
use record::{time_us_text, ResultFile, Row, RowKey, Speedup};

/// Who, what it was, what it is, the best other, and the verdict.
pub fn lines(file: &ResultFile, before: Option<&ResultFile>, sources: &[Source]) -> String {
    let earlier = before.iter().flat_map(|file| &file.rows);
    let earlier: HashMap<RowKey, &Row> = earlier.map(|row| (RowKey::of(row), row)).collect();
    let own = |row: &&Row| {
        sources
            .iter()
            .any(|source| source.name == row.contender.name)
    };
    let mut text = String::new();
    for row in file.rows.iter().filter(own) {
        let (workload, name) = (&row.workload, &row.contender.name);
        let place = format!(
            "{} {} {}/{}  {name}",
            row.op, row.dtype, workload.suite, workload.name
        );
        let was = earlier.get(&RowKey::of(row)).and_then(|row| median_us(row));
        text += &format!("{place}  was {}  {}\n", time(was), now(row, was, file));
    }
    text
}

fn now(row: &Row, was: Option<f64>, file: &ResultFile) -> String {
    let Some(is) = median_us(row) else {
        let reason = row.reason.as_deref().unwrap_or("no reason given");
        return format!("is {}: {}", row.status, reason.replace(['\n', '\r'], " "));
    };
    let change = was.map_or(String::new(), |was| format!(" ({:.3}x as fast)", was / is));
    let Some(best) = best(row) else {
        return format!("is {}{change}  best other -", time(Some(is)));
    };
    let rival = file.rows.iter().find(|other| {
        let key = RowKey {
            contender: best.baseline.clone(),
            ..RowKey::of(row)
        };
        RowKey::of(other) == key
    });
    format!(
        "is {}{change}  best other {} {}  {}",
        time(Some(is)),
        time(rival.and_then(median_us)),
        best.baseline,
        best.verdict
    )
}

/// The fastest baseline; where there is none, the fastest other.
fn best(row: &Row) -> Option<&Speedup> {
    let best = row.against_best.as_ref().map(|best| &best.speedup);
    let others = row.against.iter();
    best.or_else(|| others.min_by(|left, right| left.ratio.total_cmp(&right.ratio)))
}

fn median_us(row: &Row) -> Option<f64> {
    row.time.as_ref().map(|time| time.median_us)
}

fn time(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), |us| format!("{} us", time_us_text(us)))
}
