//! Which instruction forms of our kernels are proven, and which gates executed them: from the gates' `counters.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use crate::files;

/// The part of a gate's account that says what was there and what ran.
#[derive(Deserialize)]
struct Account {
    test: String,
    /// Kernels that are right elsewhere: what they execute is proven by them.
    #[serde(default)]
    known_right: bool,
    executed: BTreeSet<String>,
    present: BTreeMap<String, u64>,
}

impl Account {
    fn name(&self) -> &str {
        self.test.rsplit([':', '/']).next().unwrap_or_default()
    }
}

/// A table of forms, how often each stands in our kernels, what proves it, and the gates that executed it.
///
/// # Errors
///
/// Where a file is no account, or a form of our kernels is not proven: the table and the forms.
pub fn table<P: AsRef<Path>>(files: &[P]) -> Result<String, String> {
    let mut accounts = Vec::new();
    for file in files {
        let file = file.as_ref();
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = files::text(file)?;
        accounts.push(serde_json::from_str::<Account>(&text).map_err(|error| failed(&error))?);
    }
    let (foreign, own): (Vec<&Account>, Vec<&Account>) =
        accounts.iter().partition(|account| account.known_right);
    let mut present: BTreeMap<&str, u64> = BTreeMap::new();
    for (form, count) in own.iter().flat_map(|account| &account.present) {
        let most = present.entry(form).or_default();
        *most = (*most).max(*count);
    }
    let mut text = String::new();
    let mut covered = 0;
    let mut unproven = Vec::new();
    for (form, count) in &present {
        let by = |accounts: &[&Account]| -> Vec<String> {
            let found = accounts
                .iter()
                .filter(|account| account.executed.contains(*form));
            found.map(|account| account.name().to_owned()).collect()
        };
        let tests = by(&own);
        let proofs: Vec<String> = machine::proof(form)
            .map(str::to_owned)
            .into_iter()
            .chain(by(&foreign))
            .collect();
        if proofs.is_empty() {
            unproven.push(*form);
        }
        covered += usize::from(!tests.is_empty());
        let tests = if tests.is_empty() {
            "-".to_owned()
        } else {
            tests.join(" ")
        };
        let proofs = proofs.first().map_or("-", String::as_str);
        writeln!(text, "{count:>7}  {form:<64}  {proofs:<42}  {tests}")
            .map_err(|error| error.to_string())?;
    }
    writeln!(
        text,
        "{} forms, {covered} executed by a test, {} by none",
        present.len(),
        present.len() - covered
    )
    .map_err(|error| error.to_string())?;
    if unproven.is_empty() {
        return Ok(text);
    }
    Err(format!("{text}nothing proves {}", unproven.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        assert_eq!(
            lines[0],
            ["5", "add.s32", "proofs::arithmetic", "a_gate", "b_gate"]
        );
        assert_eq!(lines[1], ["1", "sub.s32", "proofs::arithmetic", "-"]);
        assert!(text.ends_with("2 forms, 1 executed by a test, 1 by none\n"));
        // A form without a test of ours is proven by a kernel that is known to be right, or not at all.
        let own = write(
            "d",
            r#"{"test": "//x:d", "executed": [], "present": {"new.s32": 1}}"#,
        );
        let right = r#"{"test": "//x:right", "known_right": true, "executed": ["new.s32"], "present": {"old.s32": 1}}"#;
        let right = write("e", right);
        let error = table(&[&own]).unwrap_err();
        assert!(error.ends_with("nothing proves new.s32"), "{error}");
        let text = table(&[&own, &right]).unwrap();
        assert!(
            text.contains("right") && !text.contains("old.s32"),
            "{text}"
        );
        let broken = write("c", "{}");
        assert!(table(&[broken]).unwrap_err().contains("missing field"));
        fs::remove_dir_all(folder).unwrap();
    }
}
