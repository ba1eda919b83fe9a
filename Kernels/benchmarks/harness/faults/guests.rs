//! Runs of `fault_bench` with libraries that misbehave: what each may cost is its own row, with a reason that names the
//! fault.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The bench, and the device to race on.
pub struct Race<'a> {
    pub program: &'a Path,
    pub device: &'a str,
    /// The library that has the faults, each by the text after the ?.
    pub zoo: &'a Path,
    /// Rows and columns.
    pub shape: &'a str,
    pub iterations: &'a str,
}

impl<'a> Race<'a> {
    /// A small problem, and few samples.
    pub fn new(program: &'a Path, device: &'a str, zoo: &'a Path) -> Self {
        Self {
            program,
            device,
            zoo,
            shape: "64x96",
            iterations: "12",
        }
    }
}

pub struct Run {
    pub output: Output,
    /// By the contender's name.
    pub rows: BTreeMap<String, Value>,
}

/// Variant, status, and a part of the reason.
pub type Expected = (&'static str, &'static str, &'static str);

impl Race<'_> {
    /// Races libraries, each as NAME=PATH?TEXT, next to an honest contender and the baseline.
    ///
    /// # Panics
    /// If the program does not start, or leaves files behind.
    pub fn run(&self, libraries: &[String], more: &[&str]) -> Run {
        let folder = tempfile::TempDir::new().expect("a folder");
        let mut command = Command::new(self.program);
        command
            .current_dir(folder.path())
            .env_remove("BUILD_WORKING_DIRECTORY")
            .args(["--device", self.device])
            .args(["--configs", self.shape, "--iters", self.iterations])
            .args(["--contenders", "honest,baseline", "--dtype", "f32"])
            .args(["--json", "run.json"])
            .args(more);
        for library in libraries {
            command.args(["--contender", library]);
        }
        let output = command.output().expect("the program starts");
        let text = std::fs::read_to_string(folder.path().join("run.json")).unwrap_or_default();
        let file: Value = serde_json::from_str(&text).unwrap_or_default();
        let rows = file["rows"].as_array().cloned().unwrap_or_default();
        let name = |row: &Value| row["contender"]["name"].as_str().unwrap_or("").to_owned();
        let rows = rows.into_iter().map(|row| (name(&row), row)).collect();
        // Whatever they do, nothing is left in the folder but the result.
        let left = std::fs::read_dir(folder.path())
            .expect("the folder")
            .count();
        assert!(left <= 1, "{left} files are left");
        Run { output, rows }
    }

    /// Checks rows of the zoo, and that nobody else's row has suffered.
    ///
    /// # Panics
    /// If one has, or a fault is not caught by its name.
    pub fn check(&self, expected: &[Expected]) {
        // The bench has contenders of some of these names.
        let named =
            |(fault, ..): &Expected| format!("guest_{fault}={}?{fault}", self.zoo.display());
        let libraries: Vec<String> = expected.iter().map(named).collect();
        let hangs = expected.iter().any(|(_, status, _)| *status == "timeout");
        let limit: &[&str] = if hangs { &["--timeout-s", "8"] } else { &[] };
        let Run { output, rows } = self.run(&libraries, limit);
        let stderr = String::from_utf8_lossy(&output.stderr);
        for name in ["honest", "baseline"] {
            let row = rows.get(name);
            let row = row.unwrap_or_else(|| panic!("no row for {name}:\n{stderr}"));
            assert_eq!(row["status"], "ok", "{name}: {}", row["reason"]);
        }
        let mut failed = false;
        for (name, status, reason) in expected {
            let row = rows.get(&format!("guest_{name}"));
            let row = row.unwrap_or_else(|| panic!("no row for {name}:\n{stderr}"));
            let found = row["reason"].as_str().unwrap_or("");
            // Which check is first may depend on the machine's load.
            let row_status = row["status"].as_str().unwrap_or("");
            assert!(
                status.split('|').any(|it| it == row_status),
                "{name}: {row_status}: {found}"
            );
            assert!(found.contains(reason), "{name}: '{found}' lacks '{reason}'");
            let timed = row["time"]["median_us"].as_f64().is_some_and(|us| us > 0.0);
            assert_eq!(timed, row_status == "ok", "{name} has a time: {timed}");
            failed |= !["ok", "unsupported"].contains(&row_status);
        }
        assert_eq!(output.status.code(), Some(i32::from(failed)), "{stderr}");
        assert!(stderr.len() < 200_000, "{} bytes printed", stderr.len());
    }
}
