//! Measures some rows of a result file again on this machine.

use crate::{compare, Collection, CompareOptions, ReportingError, Run};
use record::{Row, RowKey, Status};
use stats::Verdict;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Folder of the bench programs.
    pub programs: PathBuf,
    /// Rows to measure again, spread over the file.
    pub sample: usize,
    /// Seed for the choice.
    pub seed: u64,
    /// The smallest difference that counts.
    pub threshold: f64,
    /// A scratch folder.
    pub scratch: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    Consistent,
    Inconsistent,
    CannotTell,
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Conclusion::Consistent => "consistent",
            Conclusion::Inconsistent => "inconsistent",
            Conclusion::CannotTell => "cannot tell",
        })
    }
}

#[derive(Debug, Clone)]
pub struct Verified {
    pub key: RowKey,
    pub conclusion: Conclusion,
    pub reason: String,
}

/// Measures a sample of the rows again, reporting each result as it comes.
pub fn verify(
    collection: &Collection,
    options: &VerifyOptions,
    tell: &mut dyn FnMut(&Verified),
) -> Result<Vec<Verified>, ReportingError> {
    let rows: Vec<(&Run, &Row)> = collection
        .runs
        .iter()
        .flat_map(|run| run.file.rows.iter().map(move |row| (run, row)))
        .filter(|(_, row)| row.status == Status::Ok)
        .collect();
    if rows.is_empty() {
        return Err(ReportingError::Usage(
            "the file has no row with a time, so there is nothing to verify".to_owned(),
        ));
    }
    let mut verified = Vec::new();
    for (run, row) in spread(&rows, options.sample, options.seed) {
        let (conclusion, reason) = match again(row, options) {
            Err(reason) => (Conclusion::CannotTell, reason),
            Ok(anew) => conclude(run, row, &anew, options),
        };
        let result = Verified {
            key: RowKey::of(row),
            conclusion,
            reason,
        };
        tell(&result);
        verified.push(result);
    }
    Ok(verified)
}

/// Evenly spread items, starting at an offset given by the seed.
fn spread<T: Copy>(items: &[T], count: usize, seed: u64) -> Vec<T> {
    let count = count.clamp(1, items.len());
    let start = seed as usize % items.len();
    (0..count)
        .map(|index| items[(start + index * items.len() / count) % items.len()])
        .collect()
}

/// Runs the row's own command. A result file is untrusted: only our own programs are started, by
/// plain name, and without a shell.
fn again(row: &Row, options: &VerifyOptions) -> Result<Collection, String> {
    let words = words(&row.repro)?;
    let (program, arguments) = words.split_first().ok_or("the row has no repro command")?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !program.starts_with("bench_") || !program.chars().all(plain) {
        return Err(format!("'{program}' is not the name of a bench"));
    }
    let path = options.programs.join(program);
    if !path.is_file() {
        return Err(format!(
            "no {program} in {}; build it, or give its folder with --programs",
            options.programs.display()
        ));
    }
    let json = options.scratch.join("again.json");
    // An old result must not be mistaken for this one.
    let _ = std::fs::remove_file(&json);
    let status = Command::new(&path)
        .args(arguments)
        .args([Path::new("--json"), &json])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", path.display()))?;
    Collection::read(&json).map_err(|error| format!("{program} ended with {status}: {error}"))
}

fn conclude(
    run: &Run,
    row: &Row,
    anew: &Collection,
    options: &VerifyOptions,
) -> (Conclusion, String) {
    let key = RowKey::of(row);
    let here = &anew.runs[0].file.meta;
    let there = &run.file.meta;
    let again = anew.runs[0]
        .file
        .rows
        .iter()
        .find(|again| RowKey::of(again) == key);
    let Some(again) = again else {
        let reason = "the command now measures a different row".to_owned();
        return (Conclusion::CannotTell, reason);
    };
    if again.status != Status::Ok {
        let reason = again.reason.as_deref().unwrap_or_default();
        let conclusion = match again.status {
            Status::Wrong => Conclusion::Inconsistent,
            _ => Conclusion::CannotTell,
        };
        return (conclusion, format!("now {}: {reason}", again.status));
    }
    if here.device.name != there.device.name {
        let reason = format!(
            "measured on '{}', this is '{}'",
            there.device.name, here.device.name
        );
        return (Conclusion::CannotTell, reason);
    }
    let base = Collection {
        runs: vec![run.clone()],
    };
    let compare_options = CompareOptions {
        threshold: options.threshold,
        across_devices: false,
    };
    let comparison = match compare(&base, anew, &compare_options) {
        Ok(comparison) => comparison,
        Err(error) => return (Conclusion::CannotTell, error.to_string()),
    };
    let change = comparison.changes.iter().find(|change| change.key == key);
    let Some(change) = change else {
        return (Conclusion::CannotTell, "the row is not comparable".into());
    };
    let conclusion = match change.verdict {
        Verdict::Same => Conclusion::Consistent,
        Verdict::Slower | Verdict::Faster => Conclusion::Inconsistent,
        Verdict::Ambiguous => Conclusion::CannotTell,
    };
    let mut reason = format!(
        "{} us then, {} us now, ratio {} {}",
        record::time_us_text(change.base_us),
        record::time_us_text(change.new_us),
        record::ratio_text(change.ratio),
        record::interval_text(change.low, change.high)
    );
    for note in change.notes.iter().chain(&comparison.environment) {
        reason += &format!("; {note}");
    }
    (conclusion, reason)
}

/// Splits a command line as written by `repro`: words separated by blanks, odd ones in single quotes.
fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(quoted) => word.push(quoted),
                        None => return Err(format!("unclosed quote in '{command}'")),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_they_were_quoted() {
        let split = words(r"bench_norms --workload 'a b' --op 'it'\''s' ''").unwrap();
        assert_eq!(
            split,
            ["bench_norms", "--workload", "a b", "--op", "it's", ""]
        );
        assert!(words("a 'b").is_err());
    }

    #[test]
    fn the_sample_is_spread() {
        let items: Vec<usize> = (0..10).collect();
        assert_eq!(spread(&items, 5, 1), [1, 3, 5, 7, 9]);
        assert_eq!(spread(&items, 50, 0).len(), 10);
    }
}
