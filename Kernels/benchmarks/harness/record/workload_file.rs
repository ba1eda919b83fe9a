//! Workload files: a user's own shapes for one bench, with names, provenance and weights.

use crate::bounds::{check_text, is_plain, read_bounded};
use crate::check::{NAME_MAX, WEIGHT_MAX};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// Version of the format that this crate writes, and the only one it reads.
pub const WORKLOADS_VERSION: u32 = 1;

const WORKLOADS_MAX: usize = 10_000;

/// The shapes of one bench, as a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    pub workloads_version: u32,
    /// The bench whose shapes these are, such as `bench_decode`.
    pub bench: String,
    /// The suite's name in results.
    pub suite: String,
    pub workloads: Vec<GivenWorkload>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenWorkload {
    /// Unique among the workloads of an operation.
    pub name: String,
    /// The only operation that it is meant for; otherwise all that take such a shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// In the bench's own terms.
    pub shape: Map<String, Value>,
    /// Where the shape comes from.
    pub provenance: String,
    /// How much it counts in means, relative to the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// Why a workload file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{origin} is not a workload file: {problem}")]
pub struct BadWorkloadFile {
    origin: String,
    problem: String,
}

impl WorkloadFile {
    pub fn read(path: &Path) -> Result<Self, BadWorkloadFile> {
        let origin = path.display().to_string();
        let text = read_bounded(path).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| std::io::Error::other(error.to_string()))
        });
        match text {
            Ok(text) => Self::from_json(&text, &origin),
            Err(error) => Err(BadWorkloadFile {
                origin,
                problem: error.to_string(),
            }),
        }
    }

    /// Parses its text; `origin` names it in errors.
    pub fn from_json(text: &str, origin: &str) -> Result<Self, BadWorkloadFile> {
        let read = || -> Result<Self, String> {
            check_text(text).map_err(|error| error.to_string())?;
            let file: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
            file.check()?;
            Ok(file)
        };
        read().map_err(|problem| BadWorkloadFile {
            origin: origin.to_owned(),
            problem,
        })
    }

    /// One line per workload.
    pub fn to_json(&self) -> Result<String, BadWorkloadFile> {
        let write = || -> Result<String, String> {
            self.check()?;
            let (bench, suite) = (Value::from(&*self.bench), Value::from(&*self.suite));
            let lines: Result<Vec<String>, _> =
                self.workloads.iter().map(serde_json::to_string).collect();
            let lines = lines.map_err(|error| error.to_string())?.join(",\n");
            let version = self.workloads_version;
            Ok(format!(
                "{{\n\"workloads_version\": {version},\n\"bench\": {bench},\n\"suite\": {suite},\n\
                 \"workloads\": [\n{lines}\n]\n}}\n"
            ))
        };
        write().map_err(|problem| BadWorkloadFile {
            origin: format!("the suite {}", self.suite),
            problem,
        })
    }

    fn check(&self) -> Result<(), String> {
        let version = self.workloads_version;
        if version != WORKLOADS_VERSION {
            return Err(format!(
                "it has version {version}, but this program knows only {WORKLOADS_VERSION}"
            ));
        }
        check_name("bench", &self.bench)?;
        check_name("suite", &self.suite)?;
        match self.workloads.len() {
            0 => return Err("it has no workloads".to_owned()),
            1..=WORKLOADS_MAX => {}
            count => return Err(format!("{count} workloads; at most {WORKLOADS_MAX}")),
        }
        let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for workload in &self.workloads {
            let name = &workload.name;
            check_name("name", name)?;
            if let Some(op) = &workload.op {
                check_name("op", op)?;
            }
            let told = |problem: String| format!("workload '{name}': {problem}");
            if !workload.provenance.chars().all(is_plain) {
                return Err(told("its provenance has a control character".to_owned()));
            }
            if let Some(weight) = workload.weight {
                if !(weight > 0.0 && weight <= WEIGHT_MAX) {
                    return Err(told(format!(
                        "a weight of {weight}; it must be above 0 and at most {WEIGHT_MAX}"
                    )));
                }
            }
            // One for all operations clashes with one for any.
            let known = !names.insert(name);
            let clash = seen.contains(&(name, None)) || (known && workload.op.is_none());
            if clash || !seen.insert((name, workload.op.as_ref())) {
                return Err(told("another has the same name".to_owned()));
            }
        }
        Ok(())
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    // A comma separates names on a command line.
    let fits = |c: char| is_plain(c) && c != ',';
    if name.is_empty() || name.chars().count() > NAME_MAX || !name.chars().all(fits) {
        return Err(format!(
            "a {what} must be 1 to {NAME_MAX} printable characters without a comma"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"workloads_version": 1, "bench": "bench_norms", "suite": "mine", "workloads": [
        {"name": "a", "shape": {"rows": 3, "columns": 5}, "provenance": "made up"},
        {"name": "b", "op": "softmax_fwd", "shape": {"rows": 1}, "provenance": "", "weight": 2.5},
        {"name": "b", "op": "softmax_bwd", "shape": {"rows": 1}, "provenance": ""}]}"#;

    #[test]
    fn what_is_written_reads_back() {
        let file = WorkloadFile::from_json(TEXT, "mine.json").unwrap();
        assert_eq!(file.workloads[1].weight, Some(2.5));
        let text = file.to_json().unwrap();
        assert_eq!(WorkloadFile::from_json(&text, "again").unwrap(), file);
        assert_eq!(text.lines().count(), 10);
    }

    #[test]
    fn what_cannot_be_a_suite_is_refused_by_a_sentence() {
        let refused = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            let error = WorkloadFile::from_json(&TEXT.replacen(from, to, 1), "mine.json");
            error.unwrap_err().to_string()
        };
        assert!(refused(": 1, ", ": 2, ").contains("version 2"));
        assert!(refused("\"mine\"", "\"\"").contains("a suite must be"));
        assert!(refused("\"name\": \"b\"", "\"name\": \"a\"")
            .contains("'a': another has the same name"));
        assert!(refused("softmax_bwd", "softmax_fwd").contains("'b': another"));
        assert!(refused(", \"op\": \"softmax_fwd\"", "").contains("'b': another"));
        for weight in ["0", "-1", "1e300"] {
            let told = refused("2.5", weight);
            assert!(
                told.contains("weight of") || told.contains("measures"),
                "{told}"
            );
        }
        assert!(refused("\"weight\"", "\"wait\"").contains("unknown field `wait`"));
        assert!(refused("made up", "\\u001b[2J").contains("control character"));
        let none =
            "{\"workloads_version\": 1, \"bench\": \"b\", \"suite\": \"s\", \"workloads\": []}";
        let told = WorkloadFile::from_json(none, "x").unwrap_err().to_string();
        assert_eq!(told, "x is not a workload file: it has no workloads");
    }
}
