//! Which bench measures what.

use crate::options::Kept;
use crate::SuiteError;
use children::Leash;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a bench reports with `--list-json`.
#[derive(Debug, Deserialize)]
struct Listing {
    program: String,
    device: Device,
    dtypes: Vec<String>,
    suites: Vec<Named>,
    workloads: Vec<Workload>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Device {
    pub kind: String,
    pub name: String,
    /// Nothing is timed there.
    pub emulated: bool,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Workload {
    op: String,
}

/// One bench and the selected part of it.
#[derive(Debug)]
pub struct Task {
    pub program: PathBuf,
    pub name: String,
    pub device: Device,
    /// The selecting options.
    pub arguments: Vec<String>,
    pub workloads: usize,
}

/// Both passes: backward operations run too, if the bench has any.
const PASSES: [&str; 2] = ["--mode", "fwd_bwd"];

/// The tasks of all benches, and the reason for each bench without one.
pub fn plan(benches: &[PathBuf], kept: &Kept) -> Result<(Vec<Task>, Vec<String>), SuiteError> {
    let mut tasks = Vec::new();
    let mut without = Vec::new();
    let mut known = Known::default();
    for program in benches {
        match task(program, kept, &mut known)? {
            Ok(task) => tasks.push(task),
            Err(reason) => without.push(reason),
        }
    }
    known.check("suite", &kept.suites, &known.suites)?;
    known.check("operation", &kept.ops, &known.ops)?;
    if tasks.is_empty() {
        return Err(SuiteError(format!(
            "nothing to run: {}",
            without.join("; ")
        )));
    }
    Ok((tasks, without))
}

/// Checks that some bench has each name: a misspelt one must not run nothing and pass.
#[derive(Default)]
struct Known {
    suites: BTreeSet<String>,
    ops: BTreeSet<String>,
}

impl Known {
    fn check(
        &self,
        what: &str,
        wanted: &[String],
        known: &BTreeSet<String>,
    ) -> Result<(), SuiteError> {
        match wanted.iter().find(|name| !known.contains(*name)) {
            None => Ok(()),
            Some(name) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                Err(SuiteError(format!(
                    "no bench has the {what} '{name}'; choose from {}",
                    known.join(", ")
                )))
            }
        }
    }
}

fn task(
    program: &Path,
    kept: &Kept,
    known: &mut Known,
) -> Result<Result<Task, String>, SuiteError> {
    let all = list(program, &[], kept)?;
    let on_cpu = all.device.kind == "cpu";
    let names = || all.suites.iter().map(|suite| suite.name.as_str());
    known.suites.extend(names().map(str::to_owned));
    let wanted: Vec<&str> = match kept.suites.is_empty() {
        true => names()
            .filter(|name| (*name == "smoke") == on_cpu)
            .collect(),
        false => names()
            .filter(|name| kept.suites.iter().any(|suite| suite == name))
            .collect(),
    };
    if wanted.is_empty() {
        return Ok(Err(format!("{} has none of the suites", all.program)));
    }
    let mut arguments: Vec<String> = PASSES.map(str::to_owned).into();
    for suite in wanted {
        arguments.extend(["--suite".to_owned(), suite.to_owned()]);
    }
    if !kept.chooses("--dtype") {
        arguments.extend(["--dtype".to_owned(), all.dtypes.join(",")]);
    }
    let listing = list(program, &arguments, kept)?;
    let ops: BTreeSet<&String> = listing
        .workloads
        .iter()
        .map(|workload| &workload.op)
        .collect();
    known.ops.extend(ops.iter().map(|op| (*op).clone()));
    let chosen: Vec<&String> = match kept.ops.is_empty() {
        true => ops.into_iter().collect(),
        false => ops.into_iter().filter(|op| kept.ops.contains(op)).collect(),
    };
    let count = |workload: &&Workload| chosen.contains(&&workload.op);
    let mut workloads = listing.workloads.iter().filter(count).count();
    if workloads == 0 {
        return Ok(Err(format!("{} has none of the operations", all.program)));
    }
    for op in chosen {
        arguments.extend(["--op".to_owned(), op.clone()]);
    }
    if let Some(shard) = &kept.shard {
        // A bench with fewer workloads than shards leaves some shards empty.
        let [index, shards] = shard_numbers(shard)?;
        workloads = (workloads + shards - index) / shards;
        if workloads == 0 {
            return Ok(Err(format!(
                "{} has no workloads for shard {shard}",
                all.program
            )));
        }
        arguments.extend(["--shard".to_owned(), shard.clone()]);
    }
    Ok(Ok(Task {
        program: program.to_owned(),
        name: all.program,
        device: all.device,
        arguments,
        workloads,
    }))
}

fn shard_numbers(text: &str) -> Result<[usize; 2], SuiteError> {
    let numbers = text
        .split_once('/')
        .and_then(|(index, count)| Some([index.parse().ok()?, count.parse().ok()?]));
    match numbers {
        Some([index, count]) if 1 <= index && index <= count => Ok([index, count]),
        _ => Err(SuiteError(format!(
            "--shard {text} is not a shard: expected I/N, such as 1/4 to 4/4 for four shards"
        ))),
    }
}

fn list(program: &Path, arguments: &[String], kept: &Kept) -> Result<Listing, SuiteError> {
    let failed = |problem: &dyn std::fmt::Display| {
        SuiteError(format!("{} --list-json: {problem}", program.display()))
    };
    let output = Command::new(program)
        .arg("--list-json")
        .args(arguments)
        .args(kept.bench_arguments())
        .follow()
        .output()
        .map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
}
