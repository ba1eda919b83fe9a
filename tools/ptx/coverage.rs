//! Which instruction forms of our kernels a gate has executed: from the `counters.json` of the gates.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The part of a gate's account that says what was there and what ran.
#[derive(Deserialize)]
struct Account {
    test: String,
    executed: BTreeSet<String>,
    present: BTreeMap<String, u64>,
}

/// A table of forms, how often each stands in the kernels, and the gates that executed it.
pub fn table<P: AsRef<Path>>(files: &[P]) -> Result<String, String> {
    let mut accounts = Vec::new();
    for file in files {
        let file = file.as_ref();
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
        accounts.push(serde_json::from_str::<Account>(&text).map_err(|error| failed(&error))?);
    }
    let mut present: BTreeMap<&str, u64> = BTreeMap::new();
    for (form, count) in accounts.iter().flat_map(|account| &account.present) {
        let most = present.entry(form).or_default();
        *most = (*most).max(*count);
    }
    let mut text = String::new();
    let mut covered = 0;
    for (form, count) in &present {
        let tests: Vec<&str> = accounts
            .iter()
            .filter(|account| account.executed.contains(*form))
            .map(|account| account.test.rsplit([':', '/']).next().unwrap_or_default())
            .collect();
        covered += usize::from(!tests.is_empty());
        let tests = if tests.is_empty() {
            "-".to_owned()
        } else {
            tests.join(" ")
        };
        writeln!(text, "{count:>7}  {form:<64}  {tests}").map_err(|error| error.to_string())?;
    }
    writeln!(
        text,
        "{} forms, {covered} executed by a test, {} by none",
        present.len(),
        present.len() - covered
    )
    .map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_stand_beside_their_tests() {
        let folder = std::env::temp_dir().join(format!("coverage_{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let files = [
            write(
                "a",
                r#"{"test": "//x:a_gate", "executed": ["add.s32"], "present": {"add.s32": 3, "sub.s32": 1}}"#,
            ),
            write(
                "b",
                r#"{"test": "//x:b_gate", "executed": ["add.s32"], "present": {"add.s32": 5}}"#,
            ),
        ];
        let text = table(&files).unwrap();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["5", "add.s32", "a_gate", "b_gate"]);
        assert_eq!(lines[1], ["1", "sub.s32", "-"]);
        assert!(text.ends_with("2 forms, 1 executed by a test, 1 by none\n"));
        let broken = write("c", "{}");
        assert!(table(&[broken]).unwrap_err().contains("missing field"));
        fs::remove_dir_all(folder).unwrap();
    }
}
