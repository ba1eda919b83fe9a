//! `--list` and `--dry-run`: what is available, and what would be measured.

use std::fmt::Write;

use numeric::DType;
use serde_json::json;

use crate::erased::{AnyBench, AnyContender, AnyProblem};
use crate::options::Options;
use crate::releases;
use crate::selection::Selection;

pub fn list(bench: &AnyBench, selection: &Selection) -> String {
    let mut text = String::from("suites\n");
    for suite in bench.suites {
        push(
            &mut text,
            format_args!("  {:<12} {}", suite.name, suite.about),
        );
    }
    text.push_str("\ncontenders\n");
    for contender in (bench.contenders)(&selection.choices) {
        let identity = contender.identity();
        let (name, kind, version) = (&identity.name, identity.kind, &identity.version);
        push(
            &mut text,
            format_args!(
                "  {name:<24} {kind:<10} {version}; times {}",
                identity.timed_region
            ),
        );
        for release in releases::names_of(&*contender) {
            let about = "another release, built on demand";
            push(
                &mut text,
                format_args!("  {release:<24} {kind:<10} {about}"),
            );
        }
    }
    for source in &selection.guests {
        let (name, path) = (&source.name, source.path.display());
        let guest = selection.contender(name).map(|guest| guest.identity());
        let (version, timed) = guest.map_or(("", ""), |it| (&*it.version, &*it.timed_region));
        push(
            &mut text,
            format_args!(
                "  {name:<24} {:<10} {version}; times {timed}; {path}",
                "guest"
            ),
        );
    }
    text.push_str("\nworkloads\n");
    for problem in &selection.problems {
        let workload = problem.workload();
        push(
            &mut text,
            format_args!(
                "  {:<16} {:<9} {}/{}  ({})",
                problem.op(),
                problem.dtype(),
                workload.suite,
                workload.name,
                workload.provenance
            ),
        );
    }
    text
}

/// The same for programs, with the device that would be used.
pub fn list_json(bench: &AnyBench, selection: &Selection) -> Result<String, device::DeviceError> {
    let device = selection.open_device()?;
    let info = device.info();
    let suite = |suite: &contender::Suite| json!({"name": suite.name, "about": suite.about});
    let workload = |problem: &AnyProblem| {
        let workload = problem.workload();
        json!({
            "op": problem.op(),
            "dtype": problem.dtype().to_string(),
            "suite": workload.suite,
            "name": workload.name,
            "axes": workload.axes,
        })
    };
    let contender = |contender: &AnyContender| {
        let identity = contender.identity();
        json!({
            "name": identity.name,
            "kind": identity.kind.to_string(),
            "version": identity.version,
        })
    };
    let listing = json!({
        "program": bench.name,
        "arch": bench.arch,
        "device": {"kind": info.kind.to_string(), "name": info.name, "emulated": info.emulated},
        "dtypes": bench.dtypes.iter().map(DType::to_string).collect::<Vec<_>>(),
        "suites": bench.suites.iter().map(suite).collect::<Vec<_>>(),
        "contenders": selection.contenders.iter().map(|it| contender(&**it)).collect::<Vec<_>>(),
        "workloads": selection.problems.iter().map(|it| workload(&**it)).collect::<Vec<_>>(),
    });
    Ok(format!("{listing:#}\n"))
}

pub fn dry_run(selection: &Selection, options: &Options) -> String {
    let names: Vec<&str> = selection
        .contenders
        .iter()
        .map(|contender| contender.identity().name.as_str())
        .collect();
    let mut text = format!(
        "device {}, {} workloads, contenders: {}\n",
        selection.choices.device,
        selection.problems.len(),
        names.join(", ")
    );
    let reference = selection
        .reference
        .as_ref()
        .map(|reference| &reference.identity().name);
    match (options.how.skip_verify, reference) {
        (true, _) => text.push_str("nothing is verified\n"),
        (false, Some(name)) => push(
            &mut text,
            format_args!("every element is compared with {name}"),
        ),
        (false, None) => {
            text.push_str("a sample is compared with the oracle; there is no full reference\n")
        }
    }
    for problem in &selection.problems {
        let (workload, cost) = (problem.workload(), problem.cost());
        push(
            &mut text,
            format_args!(
                "{:<16} {:<9} {}/{}  {:.3} MB read, {:.3} MB written, {:.3} GFLOP",
                problem.op(),
                problem.dtype(),
                workload.suite,
                workload.name,
                cost.read_bytes / 1e6,
                cost.written_bytes / 1e6,
                cost.flops / 1e9
            ),
        );
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments) {
    writeln!(text, "{line}").expect("a String takes any text");
}
