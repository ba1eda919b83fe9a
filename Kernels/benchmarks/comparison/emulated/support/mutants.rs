//! Systematic faults: every mutant of a case's kernels is caught, or its survival is explained.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use machine::{Launch, Watch};
pub use mutation::Kind;
use mutation::{Mutant, Slip};
use runtime::{Fault, Settings};
use serde_json::{json, Value};

use crate::{complaint, run_case, ways, Rules};

/// The first of each kind, at once, random and late: none of the others has ever noticed what these do not, and
/// whatever survives costs every one of them.
const SCHEDULES_OF_MUTANTS: usize = 3;

/// Mutants of a kind that no schedule notices, and why that is right.
pub struct Survivor {
    pub kind: Kind,
    pub count: usize,
    pub why: &'static str,
}

/// Runs up to `per_kind` mutants of each kind and each kernel of a case; at least `least` in all. The table goes to the
/// test's log and outputs.
pub fn assert_mutants(
    name: &str,
    counts: (usize, usize),
    rules: impl Into<Rules>,
    survivors: &[Survivor],
    case: impl Fn(),
) {
    assert_slips(name, &[Slip::Order], counts, rules.into(), survivors, case);
}

/// The same, with faults in what each thread computes by itself.
pub fn assert_value_mutants(
    name: &str,
    counts: (usize, usize),
    survivors: &[Survivor],
    case: impl Fn(),
) {
    assert_slips(name, Slip::ALL, counts, Watch::All.into(), survivors, case);
}

fn assert_slips(
    name: &str,
    slips: &[Slip],
    (per_kind, least): (usize, usize),
    rules: Rules,
    survivors: &[Survivor],
    case: impl Fn(),
) {
    let mut lines: BTreeMap<String, (BTreeSet<u32>, u64)> = BTreeMap::new();
    let first = ways(rules).next();
    for (kernel, report) in first.map_or_else(Vec::new, |way| run_case(way, &case)) {
        let (ran, instructions) = lines.entry(kernel).or_default();
        ran.extend(report.lines);
        *instructions += report.counters.thread_instructions;
    }
    let why = |kind: Kind| {
        let known = survivors.iter().find(|survivor| survivor.kind == kind);
        known.map(|survivor| survivor.why)
    };
    let mut rows = Vec::new();
    let mut survived: BTreeMap<Kind, usize> = BTreeMap::new();
    for (kernel, (ran, instructions)) in &lines {
        let text = runtime::text_of(kernel).unwrap_or_default();
        for mutant in mutation::mutants(&text, ran, slips, per_kind) {
            let noticed = verdict(kernel, &mutant, 16 * instructions + (1 << 22), rules, &case);
            let survives = noticed.is_none();
            if survives {
                *survived.entry(mutant.kind).or_default() += 1;
            }
            let line = mutant.change.line;
            let old = text.lines().nth(line as usize - 1).unwrap_or_default();
            rows.push(json!({
                "kernel": kernel,
                "line": line,
                "instruction": old.trim(),
                "fault": mutant.kind.to_string(),
                "noticed": noticed,
                "why_not": survives.then(|| why(mutant.kind)).flatten(),
            }));
        }
    }
    let total = rows.len();
    let table = render(&rows);
    let caught = total - survived.values().sum::<usize>();
    println!("{name}: {caught} of {total} mutants caught\n{table}");
    write(name, rows);
    let explained: BTreeMap<Kind, usize> = survivors
        .iter()
        .filter(|survivor| !survivor.why.is_empty())
        .filter(|survivor| survivor.count > 0)
        .map(|survivor| (survivor.kind, survivor.count))
        .collect();
    assert_eq!(survived, explained, "{name}\n{table}");
    assert!(total >= least, "{name}: {total} mutants, not {least}");
}

fn render(rows: &[Value]) -> String {
    let line = |row: &Value| {
        let word = |key: &str| row[key].as_str().unwrap_or("SURVIVED").to_owned();
        let instruction: String = word("instruction").chars().take(60).collect();
        let (fault, noticed) = (word("fault"), word("noticed"));
        format!(
            "{fault:<38}  {:>6}  {noticed:<12}  {instruction}\n",
            row["line"].to_string()
        )
    };
    rows.iter().map(line).collect()
}

/// The rows beside the test's log: `mutants_NAME.json` in its outputs, which `ptx mutants` reads.
fn write(name: &str, rows: Vec<Value>) {
    let Some(folder) = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR") else {
        return;
    };
    let path = PathBuf::from(folder).join(format!("mutants_{}.json", name.replace(' ', "_")));
    let file = json!({
        "test": std::env::var("TEST_TARGET").unwrap_or_default(),
        "compute_capability": crate::compute_capability(),
        "case": name,
        "mutants": rows,
    });
    std::fs::write(&path, format!("{file:#}\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// How a mutant was noticed.
fn verdict(
    kernel: &str,
    mutant: &Mutant,
    limit: u64,
    rules: Rules,
    case: &impl Fn(),
) -> Option<String> {
    let fault = Fault::Line {
        kernel: kernel.to_owned(),
        line: mutant.change.line,
        text: mutant.change.text.clone(),
    };
    debug_assert!(limit < Launch::default().limit);
    ways(rules).take(SCHEDULES_OF_MUTANTS).find_map(|way| {
        let schedule = way.schedule;
        let text = complaint(
            Settings {
                fault: Some(fault.clone()),
                limit,
                ..way
            },
            case,
        )?;
        let how = [
            ("race: ", "race"),
            ("deadlock", "deadlock"),
            ("has not ended", "endless"),
            ("PTX line", "refused"),
        ]
        .into_iter()
        .find(|(word, _)| text.contains(word))
        .map_or("values", |(_, how)| how);
        let schedule = format!("{schedule:?}");
        let schedule = schedule.split([' ', '{']).next().unwrap_or_default();
        Some(format!("{how} {schedule}"))
    })
}
