//! Which planted faults the gates noticed, and why not the others: from the gates' `mutants_*.json`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use crate::files;

#[derive(Deserialize)]
struct Account {
    test: String,
    compute_capability: u32,
    case: String,
    mutants: Vec<Mutant>,
}

#[derive(Deserialize)]
struct Mutant {
    line: u32,
    instruction: String,
    fault: String,
    /// How, and under which schedule.
    noticed: Option<String>,
    why_not: Option<String>,
}

/// Tables in Markdown: one line per gate and case, then one per survivor.
///
/// # Errors
///
/// Where a file is no such account, or a survivor is not explained: the tables and their number.
pub fn table<P: AsRef<Path>>(files: &[P]) -> Result<String, String> {
    let mut accounts = Vec::new();
    for file in files {
        let file = file.as_ref();
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = files::text(file)?;
        accounts.push(serde_json::from_str::<Account>(&text).map_err(|error| failed(&error))?);
    }
    let write = |text: &mut String| -> Result<usize, std::fmt::Error> {
        let (mut total, mut caught, mut unexplained) = (0, 0, 0);
        writeln!(
            text,
            "| gate | case | arch | mutants | caught | noticed by |"
        )?;
        writeln!(text, "|---|---|---|---|---|---|")?;
        for account in &accounts {
            let mut by: BTreeMap<&str, usize> = BTreeMap::new();
            for noticed in account
                .mutants
                .iter()
                .filter_map(|one| one.noticed.as_deref())
            {
                *by.entry(noticed).or_default() += 1;
            }
            let noticed: usize = by.values().sum();
            let words: Vec<String> = by
                .iter()
                .map(|(how, count)| format!("{how} {count}"))
                .collect();
            let (gate, mutants) = (account.test.trim_start_matches('/'), account.mutants.len());
            let (case, arch, words) = (&account.case, account.compute_capability, words.join(", "));
            writeln!(
                text,
                "| {gate} | {case} | sm_{arch}a | {mutants} | {noticed} | {words} |"
            )?;
            total += mutants;
            caught += noticed;
        }
        writeln!(text, "\n{caught} of {total} mutants caught.")?;
        let survives = |one: &&Mutant| one.noticed.is_none();
        if caught < total {
            writeln!(
                text,
                "\n| survivor | of | PTX line | instruction | why |\n|---|---|---|---|---|"
            )?;
        }
        for account in &accounts {
            for one in account.mutants.iter().filter(survives) {
                let why = one.why_not.as_deref().unwrap_or_default();
                unexplained += usize::from(why.is_empty());
                let (fault, case, line) = (&one.fault, &account.case, one.line);
                let instruction = one.instruction.replace('|', "\\|");
                writeln!(
                    text,
                    "| {fault} | {case} | {line} | `{instruction}` | {why} |"
                )?;
            }
        }
        Ok(unexplained)
    };
    let mut text = String::new();
    match write(&mut text).map_err(|error| error.to_string())? {
        0 => Ok(text),
        count => Err(format!("{text}{count} survivors are not explained")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn survivors_are_listed_with_their_reason() {
        let folder = std::env::temp_dir().join(format!("mutants_{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, mutants: &str| {
            let path = folder.join(name);
            let start =
                r#"{"test": "//x:gemm", "compute_capability": 100, "case": "ours", "mutants": "#;
            fs::write(&path, format!("{start}[{mutants}]}}")).unwrap();
            path
        };
        let noticed = r#"{"line": 3, "instruction": "bar.sync 0;", "fault": "drop a barrier",
            "noticed": "race AtOnce", "why_not": null}"#;
        let survivor = |why: &str| {
            format!(
                r#"{{"line": 7, "instruction": "@p bra a|b;", "fault": "drop a wait",
                "noticed": null, "why_not": {why}}}"#
            )
        };
        let (caught, explained, unexplained) = (
            write("a", &format!("{noticed}, {noticed}")),
            write("b", &survivor(r#""one tile""#)),
            write("c", &survivor("null")),
        );
        let text = table(&[&caught, &explained]).unwrap();
        for line in [
            "| x:gemm | ours | sm_100a | 2 | 2 | race AtOnce 2 |",
            "2 of 3 mutants caught.",
            r"| drop a wait | ours | 7 | `@p bra a\|b;` | one tile |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(!table(&[&caught]).unwrap().contains("survivor"));
        let error = table(&[&unexplained]).unwrap_err();
        assert!(error.ends_with("1 survivors are not explained"), "{error}");
        let broken = folder.join("d");
        fs::write(&broken, "{}").unwrap();
        assert!(table(&[broken]).unwrap_err().contains("missing field"));
        fs::remove_dir_all(folder).unwrap();
    }
}
