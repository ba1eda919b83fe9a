//! Instruction forms: what files hold, and what a run executed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use machine::{class, Module, Report, Schedule};
use serde_json::json;

pub fn json(reports: &[(Schedule, Report)]) -> String {
    let runs: Vec<_> = reports
        .iter()
        .map(|(schedule, report)| {
            json!({
                "schedule": format!("{schedule:?}"),
                "clusters": report.clusters,
                "counters": report.counters,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "runs": runs }))
}

/// How fast a launch ran on each core outside of its matrix products.
pub fn rate(report: &Report) -> String {
    format!(
        "{:.1} M/s per core outside of products, which took {:.0} %",
        report.counters.thread_instructions as f64 / report.other_time.as_secs_f64() / 1e6,
        100.0 * report.product_time.as_secs_f64()
            / (report.product_time + report.other_time).as_secs_f64()
    )
}

pub fn forms(modules: &[Module]) -> Result<String, String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut unknown: BTreeSet<String> = BTreeSet::new();
    for module in modules {
        for instruction in module
            .syntax()
            .functions
            .iter()
            .flat_map(|function| &function.instructions)
        {
            *counts.entry(&instruction.opcode).or_default() += 1;
        }
        for kernel in module.kernels() {
            let found = module
                .unknown_forms(kernel)
                .map_err(|error| error.to_string())?;
            unknown.extend(found.into_iter().map(|form| form.place.instruction));
        }
    }
    let mut text = String::new();
    for (form, count) in &counts {
        let known = if unknown.contains(*form) {
            "unknown"
        } else {
            "known"
        };
        writeln!(text, "{count:>8}  {known:<7}  {:<17}  {form}", class(form))
            .map_err(|error| error.to_string())?;
    }
    writeln!(text, "{} forms, {} unknown", counts.len(), unknown.len())
        .map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use machine::{Counters, PerBlock, Spread};
    use serde_json::Value;

    use super::*;

    #[test]
    fn blocks_have_averages_and_maxima() {
        let spread = |total, most| Spread { total, most };
        let per_block = PerBlock {
            blocks: 4,
            thread_instructions: spread(640, 256),
            multiply_adds: spread(6, 6),
            bytes: BTreeMap::from([("global read", spread(64, 16))]),
            waits: BTreeMap::from([("mbarrier", spread(10, 7))]),
            ..PerBlock::default()
        };
        let report = Report {
            counters: Counters {
                per_block,
                ..Counters::default()
            },
            ..Report::default()
        };
        let file: Value = serde_json::from_str(&json(&[(Schedule::AtOnce, report)])).unwrap();
        let found = &file["runs"][0]["counters"]["per_block"];
        let wanted = json!({
            "blocks": 4,
            "thread_instructions": {"average": 160.0, "most": 256},
            "products": {"average": 0.0, "most": 0},
            "multiply_adds": {"average": 1.5, "most": 6},
            "bytes": {"global read": {"average": 16.0, "most": 16}},
            "waits": {"mbarrier": {"average": 2.5, "most": 7}},
        });
        assert_eq!(*found, wanted);
    }
}
