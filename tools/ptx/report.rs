//! Instruction forms: what files hold, and what a run executed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use machine::{Module, Report, Schedule};
use serde_json::json;

/// What an instruction does, in the words of the unit that does it.
fn class(form: &str) -> &'static str {
    let base = form.split('.').next().unwrap_or_default();
    match base {
        "mma" | "wgmma" | "tcgen05" => "tensor core",
        "ex2" | "lg2" | "rcp" | "rsqrt" | "sqrt" | "sin" | "cos" | "tanh" => "special function",
        "cp" => "asynchronous copy",
        "ld" | "st" | "atom" | "red" | "ldmatrix" | "stmatrix" => "memory",
        "bar" | "barrier" | "mbarrier" | "fence" | "membar" | "griddepcontrol" => "synchronisation",
        "shfl" | "vote" | "redux" | "match" | "elect" | "activemask" => "warp",
        "bra" | "brx" | "call" | "ret" | "exit" => "control",
        "cvt" | "cvta" => "conversion",
        _ => "arithmetic",
    }
}

pub fn json(reports: &[(Schedule, Report)]) -> String {
    let runs: Vec<_> = reports
        .iter()
        .map(|(schedule, report)| {
            let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
            for (form, count) in &report.forms {
                *classes.entry(class(form)).or_default() += count;
            }
            json!({
                "schedule": format!("{schedule:?}"),
                "thread_instructions": report.thread_instructions,
                "clusters": report.clusters,
                "classes": classes,
                "forms": report.forms,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "runs": runs }))
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
